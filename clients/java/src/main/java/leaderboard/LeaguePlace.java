package leaderboard;

/**
 * A member's place in a league.
 *
 * @param other of leagueAdd the tier before, of leagueGet the tier to come; null: none
 * @param outlook of leagueGet what would happen if the period ended now: up, stay or down
 * @param repeated of leagueAdd with withrepeat: did the id of once come before?
 */
public record LeaguePlace(long tier, Long room, BoardRecord record, Long other, String outlook, boolean repeated) {
}
