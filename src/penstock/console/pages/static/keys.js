// What the pages of the console do in the browser by themselves: keys, the theme, the language, the logout.
(() => {
  const YEAR_S = 31536000;
  const remember = (name, value) => {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `${name}=${value}; path=/; max-age=${YEAR_S}; samesite=strict${secure}`;
  };
  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable=true], .cm-editor") !== null;
  const place = (name) => document.querySelector(`[data-testid="menu-${name}"]`);
  const PLACES = { o: "overview", t: "topics", g: "groups", m: "messages", s: "schemas", c: "connect", q: "sql" };
  let isGoing = false;

  globalThis.consoleHelp = () => {
    const opener = document.getElementById("console-help-opener");
    if (opener) opener.dispatchEvent(new CustomEvent("open"));
  };
  globalThis.consoleTheme = () => {
    const isDark = !document.body.classList.contains("body--dark");
    remember("penstock_theme", isDark ? "dark" : "light");
    Quasar.Dark.set(isDark);
    globalThis.dispatchEvent(new CustomEvent("console-theme", { detail: { isDark } }));
  };
  globalThis.consoleLanguage = (code) => {
    remember("penstock_language", code);
    location.reload();
  };
  let isLeaving = false;
  globalThis.consoleLogout = async () => {
    isLeaving = true;
    await fetch("/logout", { method: "POST" });
    location.href = "/login?why=out";
  };
  globalThis.consoleEnded = () => {
    if (!isLeaving) location.href = "/login?why=expired";
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof Element)) return;
    if (isTyping(event.target) || document.querySelector(".q-dialog__inner")) return;
    if (isGoing) {
      isGoing = false;
      const name = PLACES[event.key];
      if (name && place(name)) {
        event.preventDefault();
        place(name).click();
      }
      return;
    }
    if (event.key === "/") {
      const field = document.querySelector("input[data-search], [data-search] input, [data-search] textarea");
      if (field) {
        event.preventDefault();
        field.focus();
        if (field.select) field.select();
      }
    } else if (event.key === "?") {
      event.preventDefault();
      consoleHelp();
    } else if (event.key === "g") {
      isGoing = true;
      setTimeout(() => (isGoing = false), 1500);
    }
  });
})();
