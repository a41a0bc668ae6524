// Graphs side by side, drawn: the rows in sight, a panel about the node at the cursor, and keys, clicks and choices.
"use strict";
(() => {
  const holder = document.getElementById("graph-data"), host = document.getElementById("viewer");
  if (!holder || !host) return;
  const data = JSON.parse(holder.textContent);
  const PARTS = ["compute", "input", "attribute", "output", "collective", "wait", "view", "write"];
  const SLOT = "\u0001", PRINTED = 1500, OPERANDS = 12, LINKS = 60;
  const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
  const { graphs, allRules, modulesKnown, state, m, rowOf, nameOf, usersOf, producersOf, marksOf, align, otherSide,
    statusOf, matcher, fold } = graphModel(data);

  function el(tag, set, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(set || {})) {
      if (key in made && key !== "list") made[key] = value; else made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  // ---- drawing
  const dim = { row: 26 };
  const rows = el("div", { id: "rows", tabIndex: 0, role: "grid", "aria-readonly": "true",
    "aria-label": "Nodes in list order; arrows move, Enter follows, / searches" });
  const pad = el("div", { className: "pad" });
  rows.append(pad);
  const panel = el("aside", { id: "panel", "aria-live": "polite" });
  const heads = el("div", { className: "heads" });
  const found = el("span", { id: "found", role: "status" });

  function cell(line, side) {
    const entry = line[side];
    const made = el("div", { className: "cell", role: "gridcell" });
    if (!entry) { made.classList.add("absent"); return made; }
    const row = rowOf(entry), guilty = marksOf(entry), status = statusOf(line, side);
    made.classList.add("part-" + PARTS[row[PART]]);
    if (status) made.classList.add(status);
    if (guilty.length) made.classList.add("guilty");
    const tie = tieOf(side, entry);
    if (tie) made.classList.add(tie);
    if (state.cursor?.side === side && key(state.cursor) === key(entry)) made.classList.add("cursor");
    if (state.words && matcher()(entry)) made.classList.add("hit");
    made.dataset.side = side;
    made.dataset.entry = key(entry);
    const [, full] = data.results[row[RESULT]];
    const source = row[SOURCE] >= 0 ? "\n" + data.sources[row[SOURCE]].split("\n").slice(-2).join("\n") : "";
    made.title = nameOf(entry) + (full ? ": " + full : "") + source + (guilty.length ? "\n" + guilty[0].title : "");
    made.append(
      el("span", { className: "place" }, String(entry.p)),
      el("span", { className: "name" }, el("bdi", {}, nameOf(entry))),
      el("span", { className: "call" }, ...callOf(row, OPERANDS)),
      el("span", { className: "result" }, data.results[row[RESULT]][0]));
    return made;
  }

  // The call with its operands, each a name that can be clicked.
  function callOf(row, most) {
    const pieces = data.calls[row[CALL]].split(SLOT), made = [];
    pieces.forEach((piece, i) => {
      const name = row[FIRST + i - 1];
      if (i > 0 && i <= most) made.push(el("span", { className: "operand", "data-name": name }, data.names[name]));
      if (i <= most) made.push(piece);
    });
    if (pieces.length - 1 > most) made.push(`… ${pieces.length - 1 - most} more`);
    return made;
  }

  // How a node hangs together with the one that is followed.
  let ties = [new Map(), new Map()];
  const tieOf = (side, entry) => ties[side].get(key(entry));
  function tie() {
    ties = [new Map(), new Map()];
    const follow = state.follow;
    if (!follow) return;
    const other = otherSide(follow.side, follow);
    for (const [side, entry] of [[follow.side, follow], [1 - follow.side, other]]) {
      if (!entry) continue;
      producersOf(entry).forEach((e) => ties[side].set(key(e), "producer"));
      usersOf(entry).forEach((e) => ties[side].set(key(e), "user"));
      ties[side].set(key(entry), "followed");
    }
  }

  function foldRow(item) {
    const [from, to] = item.fold;
    const run = m.lines.slice(from, to);
    const parts = run.map((line) => rowOf(line[1] || line[0])[PART]);
    const launches = parts.filter((part) => part === 4).length;
    const names = [run[0], run[run.length - 1]].map((line) => nameOf(line[1] || line[0]));
    const about = count(run.length, "line") + (launches ? ", " + count(launches, "launch") : "");
    const ends = names[0] === names[1] ? names[0] : `${names[0]} … ${names[1]}`;
    const title = item.title || (state.show === "modules" && modulesKnown ? `no module: ${ends}` : ends);
    const open = { "aria-expanded": String(item.isOpen), "data-fold": from };
    return el("button", { className: "fold", type: "button", tabIndex: -1, ...open },
      el("span", { className: "arrow" }, item.isOpen ? "▾" : "▸"), el("b", {}, title), " " + about);
  }

  function itemRow(item, i) {
    const made = el("div", { className: "line", role: "row", id: "line-" + i });
    made.style.top = i * dim.row + "px";
    const line = m.lines[item.line];
    if (item.head) made.append(el("span", {}), el("b", { className: "head" }, item.head));
    else made.append(...(item.fold ? [foldRow(item)] : [cell(line, 0), cell(line, 1)]));
    return made;
  }

  let drawn = [-1, -1];
  function draw(force) {
    const from = Math.max(0, Math.floor(rows.scrollTop / dim.row) - 8);
    const to = Math.min(m.items.length, Math.ceil((rows.scrollTop + rows.clientHeight) / dim.row) + 8);
    if (!force && drawn[0] === from && drawn[1] === to) return;
    drawn = [from, to];
    pad.style.height = m.items.length * dim.row + "px";
    pad.replaceChildren(...m.items.slice(from, to).map((item, i) => itemRow(item, from + i)));
  }

  function redraw() {
    dim.row = parseFloat(getComputedStyle(rows).getPropertyValue("--row")) || 26;
    fold();
    tie();
    rows.setAttribute("aria-rowcount", m.items.length);
    rows.style.height = `min(70vh, ${Math.max(3, m.items.length) * dim.row + 2}px)`;
    draw(true);
    showPanel();
    found.textContent = state.words ? count(hits().length, "node") : "";
  }

  function reveal(line) {
    const i = m.items.findIndex((item) => item.line === line);
    if (i < 0) return;
    const top = i * dim.row;
    if (top < rows.scrollTop || top + dim.row > rows.scrollTop + rows.clientHeight) {
      rows.scrollTop = top - rows.clientHeight / 2 + dim.row;
    }
    rows.setAttribute("aria-activedescendant", "line-" + i);
    draw(true);
  }

  function leave() {
    state.cursor = state.follow = null;
    redraw();
  }

  const close = el("button", { type: "button", className: "close", "aria-label": "close" }, "×");
  close.addEventListener("click", () => { leave(); rows.focus(); });

  // ---- the panel: all about the node at the cursor
  function showPanel() {
    const entry = state.cursor;
    panel.hidden = !entry;
    if (!entry) return;
    const row = rowOf(entry), graph = graphs[entry.g], side = entry.side;
    const titles = data.views[state.view][SIDES[side]];
    const where = (titles.find(([g]) => g === entry.g) || [0, ""])[1];
    const link = (e, side, text) => el("a", { href: "#graphs", "data-go": key(e), "data-side": side }, text);
    const links = (entries) => entries.slice(0, LINKS).flatMap((e) => [link(e, side, nameOf(e)), " "])
      .concat(entries.length > LINKS ? [`and ${entries.length - LINKS} more`] : []);
    const list = el("dl", {});
    const add = (title, ...content) => {
      if (content.length) list.append(el("dt", {}, title), el("dd", {}, ...content));
    };
    const result = data.results[row[RESULT]][1];
    const storage = row[STORAGE] >= 0 ? el("span", { className: "quiet" }, ` storage ${row[STORAGE]}`) : "";
    if (result) add("returns", el("span", { className: "full" }, result), storage);
    add("calls", el("code", { className: "call" }, ...callOf(row, 200)));
    add("from", ...links(producersOf(entry)));
    add("used by", ...links(usersOf(entry)));
    const ordered = (mine, theirs) => graph.order.filter((edge) => edge[mine] === entry.p)
      .map((edge) => ({ g: entry.g, p: edge[theirs] }));
    add("runs after", ...links(ordered(1, 0)));
    add("runs before", ...links(ordered(0, 1)));
    const other = otherSide(side, entry);
    if (other) add(SIDES[1 - side], link(other, 1 - side, `${nameOf(other)} #${other.p}`));
    if (row[MODULE] >= 0) add("module", el("code", {}, data.modules[row[MODULE]]));
    if (row[SOURCE] >= 0) add("source", el("pre", {}, data.sources[row[SOURCE]]));
    for (const mark of marksOf(entry)) {
      const number = mark.finding + 1;
      add("finding", el("a", { href: "#finding-" + number }, `${number}. ${mark.rule}`), ": " + mark.title);
    }
    panel.replaceChildren(
      el("h3", {}, el("bdi", {}, nameOf(entry)), el("span", { className: "quiet" }, ` #${entry.p}, ${where}`), close),
      list);
  }

  // ---- going about
  function go(side, entry, followed) {
    state.cursor = { side, g: entry.g, p: entry.p };
    if (followed) {
      if (state.follow) state.back.push(state.follow);
      state.follow = state.cursor;
      const share = `#node=${SIDES[side]}:${encodeURIComponent(nameOf(entry))}`;
      try { history.replaceState(null, "", share); } catch { /* a page without an address */ }
    }
    host.dataset.side = side;
    redraw();
    reveal(m.places[side].get(key(entry)));
  }

  // The node of this name: after the pass, or else before it.
  function goToName(name, sides) {
    for (const side of sides) {
      for (const [g] of data.views[state.view][SIDES[side]]) {
        const p = graphs[g].at.get(name);
        if (p !== undefined) { go(side, { g, p }, true); return true; }
      }
    }
    return false;
  }

  function hits() {
    if (!state.words) return [];
    const hit = matcher(), all = [];
    m.lines.forEach((line) => {
      const side = [1, 0].find((s) => line[s] && hit(line[s]));
      if (side !== undefined) all.push([side, line[side]]);
    });
    return all;
  }

  function nextHit(step) {
    const all = hits();
    if (!all.length) return;
    const here = state.cursor ? m.places[state.cursor.side].get(key(state.cursor)) : -1;
    const at = all.map(([side, entry]) => m.places[side].get(key(entry)));
    let i = step > 0 ? at.findIndex((line) => line > here) : at.findLastIndex((line) => line < here);
    if (i < 0) i = step > 0 ? 0 : all.length - 1;
    go(all[i][0], all[i][1], false);
    found.textContent = `${i + 1} of ${count(all.length, "node")}`;
  }

  function move(step) {
    const here = state.cursor ? m.places[state.cursor.side].get(key(state.cursor)) : -1;
    const side = state.cursor ? state.cursor.side : data.views[state.view].after.length ? 1 : 0;
    let i = m.items.findIndex((item) => item.line === here);
    for (i += step; i >= 0 && i < m.items.length; i += Math.sign(step)) {
      const line = m.items[i].line === undefined ? null : m.lines[m.items[i].line];
      if (!line) continue;
      const at = line[side] ? side : line[1 - side] ? 1 - side : -1;
      if (at >= 0) { go(at, line[at], false); return; }
    }
  }

  function across(side) {
    if (!state.cursor || state.cursor.side === side) return;
    const line = m.lines[m.places[state.cursor.side].get(key(state.cursor))];
    const entry = line[side] || otherSide(state.cursor.side, state.cursor);
    if (entry) go(side, entry, false);
  }

  rows.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowDown: () => move(1), ArrowUp: () => move(-1), PageDown: () => move(20), PageUp: () => move(-20),
      ArrowLeft: () => across(0), ArrowRight: () => across(1),
      Enter: () => state.cursor && go(state.cursor.side, state.cursor, true),
      Backspace: () => { const to = state.back.pop(); if (to) { state.follow = null; go(to.side, to, true); } },
      n: () => nextHit(1), N: () => nextHit(-1),
      Escape: leave,
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  rows.addEventListener("scroll", () => draw(false), { passive: true });
  host.addEventListener("click", (event) => {
    const folded = event.target.closest("[data-fold]");
    if (folded) {
      const from = Number(folded.dataset.fold);
      if (!state.open.delete(from)) state.open.add(from);
      redraw();
      return;
    }
    const link = event.target.closest("[data-go]");
    const at = event.target.closest(".cell[data-entry]");
    const target = link ? link.dataset.go : at && at.dataset.entry;
    if (!target) return;
    if (link) event.preventDefault();
    const side = Number((link || at).dataset.side);
    const [g, p] = target.split(":").map(Number);
    const operand = !link && event.target.closest(".operand");
    const from = operand ? graphs[g].at.get(Number(operand.dataset.name)) : undefined;
    go(side, { g, p: from === undefined ? p : from }, true);
    if (!link) rows.focus({ preventScroll: true });
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-node]");
    if (!link) return;
    event.preventDefault();
    goToName(Number(link.dataset.node), [1, 0]);
    host.scrollIntoView({ block: "start" });
    rows.focus({ preventScroll: true });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    event.preventDefault();
    search.focus();
    host.scrollIntoView({ block: "nearest" });
  });

  // ---- the bar
  const select = (label, options, change) => {
    const made = el("select", {}, ...options.map(([value, text]) => el("option", { value }, text)));
    made.addEventListener("change", () => change(made.value));
    return [el("label", {}, label + " ", made), made];
  };
  const hasAfter = data.views.some((view) => view.after.length);
  const folded = modulesKnown ? "folded by module" : "folded up to each wait";
  const choices = [["all", "all nodes"], ["modules", folded], ["communication", "communication only"]];
  if (hasAfter) choices.unshift(["changes", "what changed"]);
  if (data.marks.length) choices.unshift(["findings", "near findings"]);
  const reset = () => { state.open.clear(); redraw(); };
  const [showLabel, showSelect] = select("Show", choices, (value) => { state.show = value; reset(); });
  const [viewLabel] = select("Of", data.views.map((view, i) => [i, view.title]), (value) => {
    state.view = Number(value);
    state.cursor = state.follow = null;
    open();
  });
  const ruleChoices = [["", "all rules"], ...allRules.map((rule) => [rule, rule])];
  const [ruleLabel] = select("Rule", ruleChoices, (value) => { state.rule = value; reset(); });
  const search = el("input", { type: "search", placeholder: "search: /", spellcheck: false,
    "aria-label": "Search names, calls and modules" });
  let pause = 0;
  const look = () => {
    clearTimeout(pause);
    state.words = search.value.trim();
    redraw();
  };
  search.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(look, 120); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { look(); nextHit(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; look(); rows.focus(); }
  });
  const sides = el("span", { className: "sides" }, ...SIDES.map((name, side) =>
    el("button", { type: "button", onclick: () => { host.dataset.side = side; redraw(); } }, name)));

  function open() {
    align();
    const view = data.views[state.view];
    const head = ([g, title]) => [el("b", {}, title), ` ${count(graphs[g].rows.length, "node")} `];
    heads.replaceChildren(...SIDES.map((side) => el("div", {}, ...view[side].flatMap(head))));
    host.classList.toggle("single", !view.after.length);
    redraw();
  }

  const bar = el("div", { className: "bar" }, showLabel, data.views.length > 1 ? viewLabel : null,
    allRules.length > 1 ? ruleLabel : null, search, found, hasAfter ? sides : null);
  const legend = hasAfter ? ["removed", "added", "moved", "again", "changed"] : [];
  const keys = el("p", { className: "keys quiet" },
    ...legend.flatMap((word) => [el("span", { className: "legend " + word }, word), " "]),
    ...(data.marks.length ? [el("span", { className: "legend guilty" }, "named by a finding"), " "] : []),
    el("span", { className: "legend producer" }, "where a value comes from"), " ",
    el("span", { className: "legend user" }, "who uses it"), " ",
    el("span", {}, "Arrows move, Enter follows a value, Backspace goes back, / searches, n finds the next."));
  host.append(bar, heads, rows, panel, keys);
  const total = graphs.reduce((sum, graph) => sum + graph.rows.length, 0);
  state.show = data.marks.length ? "findings" : total <= 400 ? "all" : hasAfter ? "changes" : "modules";
  showSelect.value = state.show;
  host.dataset.side = hasAfter ? 1 : 0;
  open();
  addEventListener("resize", redraw);

  // On paper there is no scrolling: what is wanted is drawn at once, as far as anybody would read it.
  addEventListener("beforeprint", () => {
    dim.row = parseFloat(getComputedStyle(rows).getPropertyValue("--row")) || 26;
    host.classList.add("printed");
    pad.replaceChildren(...m.items.slice(0, PRINTED).map(itemRow));
    if (m.items.length > PRINTED) pad.append(el("p", {}, `and ${m.items.length - PRINTED} more lines`));
  });
  addEventListener("afterprint", () => { host.classList.remove("printed"); redraw(); });

  const shared = /^#node=(before|after):(.*)$/.exec(location.hash);
  if (shared) {
    let name = "";
    try { name = decodeURIComponent(shared[2]); } catch { /* no name */ }
    const index = data.names.indexOf(name);
    if (index >= 0) goToName(index, shared[1] === "before" ? [0, 1] : [1, 0]);
  }
  // When the graphs could be used, in milliseconds: tests/browser reads it.
  host.dataset.ready = Math.round(performance.now());
})();
