// What every page can do: open folds for paper.
"use strict";
(() => {
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
})();

// Memory: what lives at the step under the pointer, or at the one that arrows moved to.
for (const picture of document.querySelectorAll("[data-memory]")) {
  const holder = document.getElementById("memory-" + picture.dataset.memory);
  const svg = picture.querySelector("svg"), words = picture.querySelector(".at");
  if (!holder || !svg || !words) continue;
  const { steps, blocks, told, x: [left, width], y: [top, height] } = JSON.parse(holder.textContent);
  if (!steps.length) continue;
  const line = document.createElementNS(svg.namespaceURI, "line");
  line.setAttribute("class", "pointer");
  line.setAttribute("y1", top);
  line.setAttribute("y2", top + height);
  const bytes = (count) => {
    const unit = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (Math.abs(count) >= 1024 && i < 4) { count /= 1024; i += 1; }
    return `${i ? count.toFixed(2) : count} ${unit[i]}`;
  };
  const text = (tag, words, name) => {
    const made = document.createElement(tag);
    made.textContent = words;
    if (name) made.className = name;
    return made;
  };
  let at = 0;
  const show = (step) => {
    at = Math.min(steps.length - 1, Math.max(0, step));
    const [name, live, counted, count] = steps[at];
    const x = left + width * (at + 0.5) / steps.length;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    if (!line.parentNode) svg.append(line);
    const begun = (start) => start === null || start <= at, ends = (end) => end === null || end >= at;
    const living = blocks.filter(([, , start, end]) => begun(start) && ends(end));
    const list = document.createElement("ul");
    living.slice(0, told).forEach(([by, size]) => {
      const item = text("li", "");
      item.append(text("b", bytes(size)), " ", text("code", by));
      list.append(item);
    });
    const more = count - told;
    if (more > 0) list.append(text("li", `and ${more} more`, "quiet"));
    const head = text("p", "");
    head.append(`step ${at}, `, text("code", name), `: ${bytes(live)} live`,
      counted === null || counted === live ? "" : `, ${bytes(counted)} as PyTorch counts`);
    words.replaceChildren(head, list);
  };
  const stepAt = (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    return Math.floor((x - left) / width * steps.length);
  };
  svg.addEventListener("pointermove", (event) => {
    const step = stepAt(event);
    if (step >= 0 && step < steps.length) show(step);
  });
  picture.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50 }[event.key];
    if (!by) return;
    event.preventDefault();
    show(at + by);
  });
}

// Tables whose rows can be chosen by what they are: a choice for each key of data-filter, which rows have as data-KEY.
for (const table of document.querySelectorAll("table[data-filter]")) {
  const bar = document.createElement("div"), shown = document.createElement("span"), chosen = {};
  bar.className = "bar filters";
  shown.className = "quiet";
  shown.setAttribute("role", "status");
  const rows = [...table.tBodies];
  const apply = () => {
    let count = 0;
    for (const row of rows) {
      const has = ([key, value]) => !value || row.dataset[key].split("\n").includes(value);
      row.hidden = !Object.entries(chosen).every(has);
      if (!row.hidden) count += 1;
    }
    shown.textContent = `${count} of ${rows.length} rows`;
  };
  for (const key of table.dataset.filter.split(" ")) {
    const values = [...new Set(rows.flatMap((row) => row.dataset[key].split("\n")))].filter(Boolean);
    if (values.length < 2) continue;
    const label = document.createElement("label"), select = document.createElement("select");
    const option = (value, words) => {
      const made = document.createElement("option");
      made.value = value;
      made.textContent = words;
      return made;
    };
    select.append(option("", "all"), ...values.map((value) => option(value, value)));
    select.addEventListener("change", () => { chosen[key] = select.value; apply(); });
    label.append(`${key} `, select);
    bar.append(label);
  }
  bar.append(shown);
  apply();
  table.closest(".scroll").before(bar);
}

// A file that is dropped on a field of the form fills it; what is compressed is unpacked.
for (const field of document.querySelectorAll("textarea[data-drop]")) {
  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    const unpacked = file.name.endsWith(".gz") ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file;
    field.value = await new Response(unpacked).text();
  });
}

// What is short is asked for by its address, which can be sent on.
for (const form of document.querySelectorAll("form[data-short]")) {
  form.addEventListener("submit", () => {
    const length = [...new FormData(form).values()].reduce((sum, value) => sum + value.length, 0);
    form.method = length <= Number(form.dataset.short) ? "get" : "post";
  });
}
