// Enhancements of the console: live blocks, local times, keys, copy, theme. The pages work without them.
(() => {
  "use strict";
  const TICK_MS = 4000;
  const all = (selector, root = document) => root.querySelectorAll(selector);

  // Live blocks (data-live: their page, with the block's name as `part`) refresh on a tick, all of a page by one request.
  // Each block is morphed, so elements that stay keep their focus, scroll position and what the viewer has opened. A block
  // waits while the viewer selects text in it, or has the focus in a row that no id identifies: another row could take
  // its place. A hidden tab requests nothing.
  const inUse = (block) => {
    const selection = document.getSelection();
    if (selection && !selection.isCollapsed && block.contains(selection.anchorNode)) return true;
    const row = document.activeElement.closest("tr, li");
    return row !== null && block.contains(row) && !row.id;
  };
  const pagesOf = (blocks) => {
    const pages = new Map();
    for (const block of blocks) {
      const url = new URL(block.dataset.live, window.location.href);
      const page = pages.get(url.pathname) ?? { parts: [], ids: [], query: new URLSearchParams() };
      for (const [name, value] of url.searchParams) if (name === "part") page.parts.push(value); else page.query.set(name, value);
      page.ids.push(block.id);
      pages.set(url.pathname, page);
    }
    return pages;
  };
  let refreshing = false;
  const refresh = async ([path, { parts, ids, query }]) => {
    query.set("part", parts.join(","));
    const selectOOB = ids.map((id) => `#${id}:morph`).join(",");
    await window.htmx.ajax("GET", `${path}?${query}`, { source: document.body, swap: "none", selectOOB });
  };
  const tick = async () => {
    if (document.hidden || refreshing) return;
    refreshing = true;
    try {
      for (const page of pagesOf([...all("[data-live]")].filter((block) => !inUse(block)))) await refresh(page);
    } catch {
      // htmx has logged the error, and the next tick tries again
    } finally {
      refreshing = false;
    }
    prepare(document);
    document.dispatchEvent(new Event("penstock:refreshed"));
  };
  window.setInterval(tick, TICK_MS);
  document.addEventListener("visibilitychange", tick);

  const isOpenable = (node) => node.matches("details, dialog");
  const isEdited = (node) => node.matches("input, textarea") && (node.value !== node.defaultValue || node.checked !== node.defaultChecked);
  const MORPH = {
    morphStyle: "outerHTML",
    callbacks: {
      beforeNodeMorphed: (old) => !(old instanceof Element && isEdited(old)),
      beforeAttributeUpdated: (name, node) => !(name === "open" && isOpenable(node)),
    },
  };
  window.htmx.defineExtension("morph", {
    isInlineSwap: (style) => style === "morph",
    handleSwap: (style, target, fragment) => {
      if (style !== "morph") return false;
      prepare(fragment); // what is equal after this is not touched
      return window.Idiomorph.morph(target, fragment.firstElementChild, MORPH);
    },
  });

  // Times are sent in UTC and shown in the viewer's zone; headings marked data-zone name the offset.
  const offset = () => {
    const minutes = -new Date().getTimezoneOffset();
    const sign = minutes < 0 ? "-" : "+";
    const two = (n) => String(Math.floor(Math.abs(n))).padStart(2, "0");
    return `UTC${sign}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
  };
  const FORMS = {
    minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    second: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
    exact: { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" },
    full: { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  };
  const local = (root) => {
    for (const time of all("time[data-form]", root)) {
      const moment = new Date(time.dateTime);
      time.textContent = moment.toLocaleString("sv-SE", FORMS[time.dataset.form]).replace(",", ".");
      time.title = `${moment.toLocaleString("sv-SE", FORMS.full)} ${offset()}`;
    }
    for (const zone of all("[data-zone]", root)) zone.textContent = offset();
  };

  // Times of a form are in UTC without this script, and in the viewer's zone with it; they are sent in UTC.
  const two = (number) => String(number).padStart(2, "0");
  const typed = (moment) => `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}T${two(moment.getHours())}:${two(moment.getMinutes())}${moment.getSeconds() ? `:${two(moment.getSeconds())}` : ""}`;
  const localise = (form) => {
    const fields = [...form.querySelectorAll("input[type=datetime-local]")];
    for (const field of fields) if (field.defaultValue) field.value = typed(new Date(`${field.defaultValue}Z`));
    form.addEventListener("formdata", ({ formData }) => {
      for (const { name, value } of fields) if (value) formData.set(name, new Date(value).toISOString().slice(0, value.length));
    });
  };
  // Quick choices of a time range: data-past is a number of minutes up to now, or "midnight" in the viewer's zone.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-past]");
    if (!button) return;
    const [from, to] = button.form.querySelectorAll("input[type=datetime-local]");
    const end = new Date();
    end.setSeconds(0, 0);
    const start = button.dataset.past === "midnight" ? new Date(new Date(end).setHours(0, 0)) : new Date(end - button.dataset.past * 60000);
    from.value = typed(start);
    to.value = typed(end);
  });

  // Copy buttons appear only where they can work.
  const copyable = (root) => {
    for (const button of all("button[data-copy]", root)) {
      button.hidden = false;
      button.onclick = async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
        button.textContent = "Copied";
        window.setTimeout(() => { button.textContent = "Copy"; }, 1500);
      };
    }
  };

  // Theme: the cookie lets the server send the right page at once; until one is set the system decides.
  const dark = () => window.getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!document.documentElement.dataset.bsTheme && window.matchMedia("(prefers-color-scheme: dark)").matches);
  const showTheme = () => {
    for (const label of all("[data-theme-label]")) label.textContent = dark() ? "Light" : "Dark";
  };
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-theme-switch]")) return;
    event.preventDefault();
    const theme = dark() ? "light" : "dark";
    document.cookie = `penstock_theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    document.documentElement.dataset.bsTheme = theme;
    showTheme();
    document.dispatchEvent(new Event("penstock:theme"));
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    showTheme();
    document.dispatchEvent(new Event("penstock:theme"));
  });

  // Keys: data-keys names the shortcut of an element, such as "g h" or "/"; the help lists those of the page. Users of
  // speech input can turn off single-key shortcuts (WCAG 2.1.4); the setting is stored in this browser.
  const NO_KEYS = "penstock.no-keys";
  const help = () => document.getElementById("help");
  const withKeys = (pressed) => [...all("[data-keys]")].find((element) => element.dataset.keys === pressed);
  const reach = (element) => {
    if (element.matches("input")) { element.focus(); element.select(); } else element.click();
  };
  const step = (by) => {
    const links = [...all("main .sheet tbody th a:first-of-type")];
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))];
    if (next) next.focus();
  };
  const listKeys = () => {
    const list = document.getElementById("page-keys");
    list.replaceChildren();
    for (const element of all("[data-keys]")) {
      const keys = document.createElement("dt");
      keys.append(...element.dataset.keys.split(" ").map((key) => {
        const shown = document.createElement("kbd");
        shown.textContent = key;
        return shown;
      }));
      const words = document.createElement("dd");
      words.textContent = (element.dataset.keysFor || element.textContent).trim().toLowerCase();
      list.append(keys, words);
    }
  };
  const openHelp = () => {
    listKeys();
    document.getElementById("no-keys").checked = window.localStorage.getItem(NO_KEYS) === "1";
    help().showModal();
  };
  let before = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Shift") return;
    if (event.target.matches("input, textarea, select, [contenteditable]") || document.querySelector("dialog[open]")) return;
    if (window.localStorage.getItem(NO_KEYS) === "1") return;
    const wanted = withKeys(`${before} ${event.key}`) || withKeys(event.key);
    before = event.key;
    if (wanted) {
      event.preventDefault();
      before = "";
      reach(wanted);
    } else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  });

  // Command palette: a list of pages and pipes, filtered by the server. Arrow keys move through it, Enter opens the first.
  const palette = () => document.getElementById("palette");
  const openPalette = () => {
    const field = document.getElementById("palette-q");
    field.value = "";
    document.getElementById("palette-targets").replaceChildren();
    palette().showModal();
    window.htmx.trigger(field, "palette");
  };
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k" || !palette()) return;
    event.preventDefault();
    if (palette().open) palette().close();
    else if (!document.querySelector("dialog[open]")) openPalette();
  });
  document.addEventListener("keydown", (event) => {
    if (!palette()?.open || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const stops = [...all("#palette-q, #palette-targets a")];
    const next = stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    stops[Math.min(stops.length - 1, Math.max(0, next))].focus();
  });
  document.addEventListener("submit", (event) => {
    if (!palette()?.contains(event.target)) return;
    const list = palette().querySelector("[data-targets]");
    const first = list && list.querySelector("a");
    if (!first || list.dataset.targets !== document.getElementById("palette-q").value.trim()) return; // the page answers
    event.preventDefault();
    first.click();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette-open]") || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openPalette();
  });
  document.addEventListener("change", (event) => {
    if (event.target.id === "no-keys") window.localStorage.setItem(NO_KEYS, event.target.checked ? "1" : "0");
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-help]")) openHelp();
    if (event.target.closest("[data-close]")) event.target.closest("dialog").close();
    for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
  });

  // Fields that belong to one choice are shown with it: data-when="auth=basic,oauth2". Without this script all are shown.
  const fitting = () => {
    for (const block of all("[data-when]")) {
      const [name, wanted] = block.dataset.when.split("=");
      const field = block.closest("form").elements[name];
      const value = field.type === "checkbox" ? (field.checked ? "on" : "") : field.value;
      block.hidden = !wanted.split(",").includes(value);
    }
  };
  document.addEventListener("change", fitting);

  // Alt and an arrow key move a row, as its buttons do; in a select element these keys open the list.
  document.addEventListener("keydown", (event) => {
    if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key) || event.target.matches("select")) return;
    const row = event.target.closest("[data-row]");
    const button = row && row.querySelector(`[data-move=${event.key === "ArrowUp" ? "up" : "down"}]`);
    if (!button) return;
    event.preventDefault();
    button.focus(); // htmx restores the focus by id, and that id now belongs to another row
    button.click();
  });
  // Errors appear and disappear without a redraw of their fields.
  const markInvalid = () => {
    for (const slot of all("[data-error-of]")) {
      document.getElementById(slot.dataset.errorOf).setAttribute("aria-invalid", String(slot.textContent.trim() !== ""));
    }
  };
  // Focus a new row, unless the user is typing elsewhere.
  const enter = () => {
    const row = document.querySelector("[data-new]");
    if (!row) return;
    row.removeAttribute("data-new");
    if (!document.activeElement.matches("input, select, textarea")) row.querySelector("input:not([type=hidden]), select, textarea").focus();
  };
  // A part of a form is redrawn from the sent values, which would discard input typed since then. Such a response is dropped
  // and requested again with the current values. The value of the button itself is only in the request.
  const written = (values) => new URLSearchParams([...values].filter(([name]) => name !== "action")).toString();
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { elt, formData, triggeringEvent } = event.detail.requestConfig;
    const redraws = event.detail.shouldSwap && elt.form && event.target !== elt && elt.form.contains(event.target);
    if (!redraws || written(formData) === written(new FormData(elt.form))) return;
    event.preventDefault();
    window.htmx.trigger(elt, triggeringEvent.type);
  });

  // The page that answers a POST with a secret must not be sent again by a reload.
  const settleUrl = () => {
    const url = document.body.dataset.settle;
    if (url) window.history.replaceState(null, "", url);
  };

  const prepare = (root) => {
    local(root);
    copyable(root);
    for (const element of all("[data-needs-script]", root)) element.hidden = false;
  };
  document.addEventListener("DOMContentLoaded", () => {
    prepare(document);
    showTheme();
    settleUrl();
    fitting();
    for (const tab of all(".tabs [aria-current]")) tab.scrollIntoView({ block: "nearest", inline: "center" });
    all("form[data-utc-times]").forEach(localise);
  });
  document.addEventListener("htmx:afterSettle", () => { prepare(document); markInvalid(); enter(); });
  document.addEventListener("htmx:oobAfterSwap", markInvalid);
  document.addEventListener("penstock:added", (event) => prepare(event.detail)); // from streams that add to a page
})();
