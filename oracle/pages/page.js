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
