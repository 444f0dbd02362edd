// Ratings as texts: how strong a player is taken to be, how sure that is, and what was played.
import { exact } from "./exact.js";
import { t, count } from "./text.js";

const DECIMALS = 2;

// Digits behind these say nothing to a reader: the score, which ranks, has its own.
const short = (text) => exact(text.replace(new RegExp(`(\\.\\d{${DECIMALS}})\\d+$`), "$1"));

export const ratingText = ({ rating }) => short(rating);
// null: the system has none.
export const deviationText = ({ deviation }) => (deviation === null ? null : `± ${short(deviation)}`);
export const playedText = ({ won, drawn, lost }) => t("wonDrawnLost", ...[won, drawn, lost].map(count));

// What rows of a board with RATING have beside the score: {key: of the heading, text(rating)}.
export const ratingColumns = (board) => [
    { key: "rating", text: (rating) => [ratingText(rating), deviationText(rating)].filter(Boolean).join(" ") },
    { key: "games", text: (rating) => count(rating.games) }, { key: "played", text: playedText },
].filter(({ key }) => key !== "rating" || !board.rating.startsWith("ELO")); // Elo's rating is the score
