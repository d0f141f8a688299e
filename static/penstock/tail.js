// The live tail: add server-sent events to the top of the table. Pausing closes the stream and keeps the position.
(() => {
  "use strict";
  const MOST_ROWS = 200;
  const AGAIN_MS = 5000;
  const at = (id) => document.getElementById(id);

  const rowOf = (copy, address) => {
    const row = at("tail-row").content.firstElementChild.cloneNode(true);
    const slot = (name) => row.querySelector(`[data-slot=${name}]`);
    slot("at").dateTime = copy.at;
    slot("step").textContent = copy.step;
    slot("node").textContent = copy.node;
    slot("message").href = address.replace("POSITION", copy.position) + (copy.child ? `?child=${copy.child}` : "");
    slot("message").firstElementChild.textContent = copy.message;
    slot("body").textContent = copy.is_cut ? `${copy.body} …` : copy.body;
    return row;
  };

  const wordsOf = (standing) => {
    if (standing.trouble) return `No messages can be read: ${standing.trouble}.`;
    const words = [];
    if (standing.left_out) words.push(`Sampled: showing ${standing.shown} of ${standing.shown + standing.left_out} messages of the last second.`);
    if (standing.unjudged) words.push(`The filter had no value for ${standing.unjudged}.`);
    return words.join(" ") || "Live.";
  };

  document.addEventListener("DOMContentLoaded", () => {
    const sheet = document.querySelector("[data-tail]");
    if (!sheet) return;
    const rows = at("tail-rows");
    const pause = at("tail-pause");
    let cursor = sheet.dataset.cursor;
    let source = null;
    let missed = 0;
    let paused = false;

    const say = (words) => {
      const text = missed ? `${words} ${missed} arrived too fast and are not shown.` : words;
      if (at("tail-standing").textContent !== text) at("tail-standing").textContent = text;
    };
    const add = (copy) => {
      rows.prepend(rowOf(copy, sheet.dataset.message));
      while (rows.children.length > MOST_ROWS) rows.lastElementChild.remove();
      at("tail-empty").hidden = true;
      document.dispatchEvent(new CustomEvent("penstock:added", { detail: rows.firstElementChild }));
    };
    const gap = () => {
      const row = rows.insertRow(0);
      const cell = row.insertCell();
      cell.colSpan = 4;
      cell.className = "wait";
      cell.textContent = "Some messages may be missing here: they are no longer kept.";
    };
    const open = () => {
      source = new EventSource(sheet.dataset.tail + encodeURIComponent(cursor));
      source.addEventListener("copy", (event) => { cursor = event.lastEventId; add(JSON.parse(event.data)); });
      source.addEventListener("standing", (event) => {
        cursor = event.lastEventId || cursor;
        const standing = JSON.parse(event.data);
        missed += standing.missed;
        if (standing.gap) gap();
        say(wordsOf(standing));
      });
      source.addEventListener("refused", (event) => {
        close();
        paused = true;
        pause.disabled = true;
        say(JSON.parse(event.data).reason);
      });
      source.onerror = () => {
        if (source.readyState !== EventSource.CLOSED) return; // the browser reconnects automatically
        say(`Connection lost. Reconnecting in ${AGAIN_MS / 1000} s.`);
        source = null;
        window.setTimeout(() => { if (!source && !paused) open(); }, AGAIN_MS);
      };
    };
    const close = () => {
      if (source) source.close();
      source = null;
    };
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.textContent = paused ? "Resume tail" : "Pause tail";
      if (paused) {
        close();
        say("Paused. Messages received meanwhile are shown when you resume, as far as they are kept.");
      } else {
        open();
      }
    });
    window.addEventListener("pagehide", close);
    open();
  });
})();
