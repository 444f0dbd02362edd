// Signing in with a user of the ACL.
import * as api from "./api.js";
import { h } from "./dom.js";
import { t } from "./text.js";

export async function showLogin(state, context) {
    const wrong = h("p.wrong", { role: "alert", id: "login-wrong" });
    const user = h("input", { id: "user", name: "username", autocomplete: "username", placeholder: "default",
        "aria-describedby": "user-hint", autocapitalize: "none", spellcheck: "false", value: "" });
    const password = h("input", { id: "password", name: "password", type: "password",
        autocomplete: "current-password", required: true, "aria-describedby": "login-wrong" });
    const button = h("button.primary", {}, t("signIn"));
    const form = h("form.login", { onsubmit: async (event) => {
        event.preventDefault();
        wrong.textContent = "";
        button.disabled = true;
        try {
            await api.login(user.value || "default", password.value);
            await context.signedIn();
            context.go(state.to, { replace: true });
        } catch (error) {
            wrong.textContent = { 0: t("offline"), 401: t("loginWrong"), 403: t("loginWrong"),
                429: t("loginSlow"), 503: t("busy") }[error.status] ?? error.message;
            password.value = "";
            password.focus();
        } finally {
            button.disabled = false;
        }
    } }, h("h1", {}, t("loginTitle")), h("p.faint", {}, t("loginWhy")),
    h("label", { for: "user" }, t("user")), user,
    h("p.faint.small", { id: "user-hint" }, t("userHint")),
    h("label", { for: "password" }, t("password")), password, wrong, button);
    return { title: t("loginTitle"), element: h("section.middle", {}, form) };
}
