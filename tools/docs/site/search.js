// The search box of the documentation. The index is loaded when the box first
// gets the focus, from a file next to this one, so that the site also works
// from a local folder.
(function () {
  "use strict";
  const root = document.currentScript.dataset.root;
  const box = document.getElementById("search");
  const list = document.getElementById("results");
  let index = null, loading = false, chosen = -1;

  function load() {
    if (index || loading) return;
    loading = true;
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = function () { index = window.p4lbSearchIndex; show(); };
    script.onerror = function () { loading = false; };
    document.head.append(script);
  }

  function words(text) { return text.toLowerCase().match(/[a-z0-9][a-z0-9_+.-]*/g) || []; }

  // score adds up the matches of every word; a section must match all of them.
  function score(entry, query) {
    let total = 0;
    for (const word of query) {
      const title = entry.page.toLowerCase().includes(word), heading = entry.heading.toLowerCase().includes(word);
      const hits = entry.lower.split(word).length - 1;
      if (!title && !heading && !hits) return 0;
      total += (title ? 8 : 0) + (heading ? 6 : 0) + Math.min(hits, 5);
    }
    return total;
  }

  function excerpt(entry, word) {
    const at = Math.max(0, entry.lower.indexOf(word) - 40);
    return (at > 0 ? "… " : "") + entry.text.slice(at, at + 140) + (entry.text.length > at + 140 ? " …" : "");
  }

  function find(query) {
    const found = [];
    for (const entry of index) {
      entry.lower = entry.lower || entry.text.toLowerCase();
      const value = score(entry, query);
      if (value > 0) found.push({ entry, value });
    }
    return found.sort((a, b) => b.value - a.value).slice(0, 12);
  }

  function show() {
    const query = words(box.value);
    chosen = -1;
    list.replaceChildren();
    list.hidden = query.length === 0;
    if (list.hidden) return;
    if (!index) { note("Loading …"); return; }
    const found = find(query);
    if (found.length === 0) { note("No page contains these words."); return; }
    for (const { entry } of found) {
      const item = document.createElement("li"), link = document.createElement("a");
      const title = document.createElement("b"), text = document.createElement("span");
      link.href = root + entry.url;
      title.textContent = entry.heading && entry.heading !== entry.page ? entry.page + ": " + entry.heading : entry.page;
      text.textContent = excerpt(entry, query[0]);
      link.append(title, text);
      item.append(link);
      list.append(item);
    }
  }

  function note(text) {
    const item = document.createElement("li");
    item.textContent = text;
    list.append(item);
  }

  function choose(step) {
    const links = list.querySelectorAll("a");
    if (links.length === 0) return;
    chosen = (chosen + step + links.length) % links.length;
    links[chosen].focus();
  }

  box.closest("form").hidden = false;
  box.addEventListener("focus", load);
  box.addEventListener("input", function () { load(); show(); });
  box.closest("form").addEventListener("submit", function (event) {
    event.preventDefault();
    const first = list.querySelector("a");
    if (first) first.click();
  });
  document.addEventListener("keydown", function (event) {
    const inside = box === document.activeElement || list.contains(document.activeElement);
    if (event.key === "/" && !inside) { event.preventDefault(); box.focus(); }
    if (!inside) return;
    if (event.key === "ArrowDown") { event.preventDefault(); choose(1); }
    if (event.key === "ArrowUp") { event.preventDefault(); choose(-1); }
    if (event.key === "Escape") { box.value = ""; show(); box.focus(); }
  });
})();
