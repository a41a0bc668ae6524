// Graphs side by side, without their drawing: what stands on which line, what is folded, and what hangs on what.
//
// A row of the data is [name, call, result, module, source, part, storage, operand...], each a number for the lists of
// the data. A line of a view is a node on the left, one on the right, or both. What is not wanted is folded: runs of
// lines become one.
"use strict";
const NAME = 0, CALL = 1, RESULT = 2, MODULE = 3, SOURCE = 4, PART = 5, STORAGE = 6, FIRST = 7;
const LAUNCH = 4, WAIT = 5;
const SIDES = ["before", "after"];
const key = (entry) => `${entry.g}:${entry.p}`;

function graphModel(data) {
  // Graphs, with who uses what. Of nodes with one name the first one keeps it.
  const graphs = data.graphs.map((graph) => {
    const at = new Map();
    graph.rows.forEach((row, place) => {
      const name = data.rows[row][NAME];
      if (!at.has(name)) at.set(name, place);
    });
    return { rows: graph.rows, order: graph.order, at, users: null };
  });
  const rowOf = (entry) => data.rows[graphs[entry.g].rows[entry.p]];
  const nameOf = (entry) => data.names[rowOf(entry)[NAME]];

  function usersOf(entry) {
    const graph = graphs[entry.g];
    if (!graph.users) {
      graph.users = graph.rows.map(() => []);
      graph.rows.forEach((row, place) => {
        for (const name of new Set(data.rows[row].slice(FIRST))) {
          const from = graph.at.get(name);
          if (from !== undefined) graph.users[from].push(place);
        }
      });
    }
    return graph.users[entry.p].map((p) => ({ g: entry.g, p }));
  }

  function producersOf(entry) {
    const graph = graphs[entry.g];
    const from = [...new Set(rowOf(entry).slice(FIRST))].map((name) => graph.at.get(name));
    return from.filter((p) => p !== undefined).map((p) => ({ g: entry.g, p }));
  }

  // What findings say of names.
  const marks = new Map();
  const allRules = [];
  for (const [name, finding, rule, title] of data.marks) {
    if (!marks.has(name)) marks.set(name, []);
    const known = marks.get(name);
    if (!known.some((mark) => mark.finding === finding && mark.rule === rule)) known.push({ finding, rule, title });
    if (!allRules.includes(rule)) allRules.push(rule);
  }
  const m = { lines: [], items: [], places: [new Map(), new Map()] };
  const state = { view: 0, show: "all", rule: "", open: new Set(), cursor: null, follow: null, words: "", back: [] };
  function marksOf(entry) {
    return (marks.get(rowOf(entry)[NAME]) || []).filter((mark) => !state.rule || mark.rule === state.rule);
  }

  // The longest run of places that rise: what was not moved.
  function rising(values) {
    const tails = [], previous = new Array(values.length).fill(-1);
    values.forEach((value, i) => {
      if (value < 0) return;
      let low = 0, high = tails.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (values[tails[middle]] < value) low = middle + 1; else high = middle;
      }
      previous[i] = low > 0 ? tails[low - 1] : -1;
      tails[low] = i;
    });
    const kept = new Set();
    for (let i = tails.length ? tails[tails.length - 1] : -1; i >= 0; i = previous[i]) kept.add(i);
    return kept;
  }

  // Both sides as lines: what stands on both in one order is on one line, and between these removed beside added.
  function align() {
    const view = data.views[state.view];
    const nodes = (side) => view[side].flatMap(([g]) => graphs[g].rows.map((_, p) => ({ g, p })));
    const [left, right] = SIDES.map(nodes);
    const first = new Map();
    left.forEach((entry, i) => {
      const name = rowOf(entry)[NAME];
      if (!first.has(name)) first.set(name, i);
    });
    const taken = new Set();
    const partner = right.map((entry) => {
      const i = first.get(rowOf(entry)[NAME]);
      if (i === undefined || taken.has(i)) return -1;
      taken.add(i);
      return i;
    });
    const kept = rising(partner);
    m.lines = [];
    let l = 0;
    let added = [];
    const flush = (until) => {
      const removed = left.slice(l, until);
      for (let i = 0; i < Math.max(removed.length, added.length); i++) {
        m.lines.push([removed[i] || null, added[i] || null, false]);
      }
      l = until;
      added = [];
    };
    right.forEach((entry, i) => {
      if (!kept.has(i)) { added.push(entry); return; }
      flush(partner[i]);
      m.lines.push([left[l], entry, true]);
      l += 1;
    });
    flush(left.length);
    m.places = [new Map(), new Map()];
    m.lines.forEach((line, i) => [0, 1].forEach((side) => {
      if (line[side]) m.places[side].set(key(line[side]), i);
    }));
  }

  const otherSide = (side, entry) => {
    const name = rowOf(entry)[NAME];
    for (const [g] of data.views[state.view][SIDES[1 - side]]) {
      const p = graphs[g].at.get(name);
      if (p !== undefined) return { g, p };
    }
    return null;
  };

  // "same", "changed", "moved", "again", or that it is on this side only.
  function statusOf(line, side) {
    const entry = line[side];
    if (!entry || !data.views[state.view].after.length) return "";
    if (line[2]) {
      const [before, after] = [0, 1].map((s) => graphs[line[s].g].rows[line[s].p]);
      return before === after ? "same" : "changed";
    }
    const other = otherSide(side, entry);
    if (!other) return side === 0 ? "removed" : "added";
    // What stands beside its own name elsewhere is here once more, as the inputs of backward that forward computes.
    const place = m.places[1 - side].get(key(other));
    return place !== undefined && m.lines[place][2] ? "again" : "moved";
  }

  const modulesKnown = data.modules.length > 0;
  // The module down to its layer and one step further: layers.3.attention of layers.3.attention.wq.
  function moduleOf(line) {
    const entry = line[1] || line[0], module = rowOf(entry)[MODULE];
    if (module < 0) return "";
    const steps = data.modules[module].split(".");
    const layer = steps.findIndex((step) => /^\d+$/.test(step));
    return steps.slice(0, layer < 0 ? 2 : layer + 2).join(".");
  }

  const has = (line, test) => [line[0], line[1]].some((entry) => entry && test(entry));

  function wanted() {
    const all = new Uint8Array(m.lines.length);
    const near = (i, by) => {
      for (let k = Math.max(0, i - by); k <= Math.min(m.lines.length - 1, i + by); k++) all[k] = 1;
    };
    const keep = (test) => m.lines.forEach((line, i) => { if (has(line, test)) all[i] = 1; });
    if (state.words) keep(matcher());
    if (state.show === "all") all.fill(1);
    if (state.show === "communication") keep((entry) => [LAUNCH, WAIT].includes(rowOf(entry)[PART]));
    if (state.show === "changes") {
      m.lines.forEach((line, i) => { if ([0, 1].some((s) => line[s] && statusOf(line, s) !== "same")) near(i, 1); });
    }
    if (state.show === "findings") {
      m.lines.forEach((line, i) => [0, 1].forEach((side) => {
        if (!line[side] || !marksOf(line[side]).length) return;
        near(i, 2);
        const others = [...producersOf(line[side]), ...usersOf(line[side])].slice(0, 100);
        others.forEach((other) => near(m.places[side].get(key(other)), 0));
      }));
    }
    for (const entry of [state.cursor, state.follow]) if (entry) near(m.places[entry.side].get(key(entry)), 0);
    return all;
  }

  function matcher() {
    const words = state.words.toLowerCase();
    return (entry) => {
      const row = rowOf(entry);
      const said = [data.names[row[NAME]], data.calls[row[CALL]], data.modules[row[MODULE]] || ""];
      return said.some((text) => text.toLowerCase().includes(words));
    };
  }

  // Where a fold ends although what follows is folded too.
  function foldKey(line) {
    if (state.show !== "modules") return "";
    return modulesKnown ? moduleOf(line) : "";
  }
  function endsFold(line) {
    return state.show === "modules" && !modulesKnown && has(line, (entry) => rowOf(entry)[PART] === WAIT);
  }

  function fold() {
    const kept = wanted();
    const titles = new Map(data.views[state.view].after);
    let part = -1;
    m.items = [];
    for (let i = 0; i < m.lines.length;) {
      const after = m.lines[i][1];
      if (titles.size > 1 && after && after.g !== part) {
        part = after.g;
        m.items.push({ head: titles.get(part) });
      }
      if (kept[i]) { m.items.push({ line: i }); i += 1; continue; }
      const from = i, title = foldKey(m.lines[i]);
      const isPart = (line) => titles.size < 2 || !line[1] || line[1].g === part;
      while (i < m.lines.length && !kept[i] && foldKey(m.lines[i]) === title && isPart(m.lines[i])) {
        i += 1;
        if (endsFold(m.lines[i - 1])) break;
      }
      const isOpen = state.open.has(from);
      m.items.push({ fold: [from, i], title, isOpen });
      if (isOpen) for (let k = from; k < i; k++) m.items.push({ line: k });
    }
  }

  return { graphs, allRules, modulesKnown, state, m, rowOf, nameOf, usersOf, producersOf, marksOf, align, otherSide,
    statusOf, matcher, fold };
}
