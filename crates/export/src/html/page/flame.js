// The flame graph, root at the top: a tree of parts that the keyboard can walk.

const CELL = 21;
/** Parts narrower than this share of the picture are not drawn. */
const NARROWEST = 0.0015;

function flame(data) {
  const body = at("flame-body");
  const told = el("p", { class: "told", "aria-live": "polite" });
  const tree = el("div", { class: "flame", role: "tree", "aria-label": "Flame graph: programs, their functions, system calls" });
  const state = { value: VALUES[0], root: null, top: null };
  const pick = VALUES.map((v, i) => el("label", {},
    el("input", { type: "radio", name: "value", value: v.name, checked: i === 0, on: { change: () => choose(v) } }), v.label));
  const reset = el("button", { type: "button", on: { click: () => zoom(state.root) } }, "Whole picture");
  body.append(el("div", { class: "bar" }, el("fieldset", {}, el("legend", {}, "Draw"), pick), reset), tree, told);

  function choose(value) {
    state.value = value;
    state.root = grow(data, value);
    zoom(state.root);
  }

  function zoom(node) {
    state.top = node;
    reset.hidden = node === state.root;
    tree.replaceChildren();
    if (!state.root.sum) {
      tree.style.height = "auto";
      tree.append(el("p", { class: "told" }, ` Nothing: no ${state.value.label} in this recording.`));
      told.textContent = "";
      return;
    }
    const cells = [];
    const path = [];
    for (let up = node.parent; up; up = up.parent) path.unshift(up);
    path.forEach((up, depth) => cells.push(cell(up, 0, 1, depth, true)));
    draw(node, 0, 1, path.length, cells);
    tree.append(...cells);
    tree.style.height = `${(Math.max(...cells.map((c) => Number(c.dataset.depth))) + 1) * CELL + 2}px`;
    const first = cells[path.length] || cells[0];
    first.tabIndex = 0;
    say(node);
  }

  function draw(node, left, width, depth, cells) {
    cells.push(cell(node, left, width, depth, false));
    let x = left;
    for (const child of node.children) {
      const part = width * (child.sum / node.sum);
      if (part >= NARROWEST) draw(child, x, part, depth + 1, cells);
      x += part;
    }
  }

  function cell(node, left, width, depth, above) {
    const c = el("div", { role: "treeitem", tabindex: -1, "aria-level": depth + 1, "data-depth": depth, class: above ? "above" : null,
      "aria-label": label(node), title: label(node), on: { click: () => zoom(node), focus: () => say(node), mouseenter: () => say(node), keydown: (e) => key(e, node) } },
      width > 0.02 ? shown(node.name) : "");
    c.style.left = `${left * 100}%`;
    c.style.width = `${width * 100}%`;
    c.style.top = `${depth * CELL}px`;
    c.style.background = colour(node);
    node.cell = c;
    return c;
  }

  function label(node) {
    return `${shown(node.name)}: ${state.value.write(node.sum)}, ${percent(node.sum / state.root.sum)} of all ${state.value.label}`;
  }

  function say(node) {
    told.textContent = label(node) + (node.place ? `   ${shown(node.place)}` : "");
  }

  function key(event, node) {
    const beside = (step) => {
      const all = node.parent ? node.parent.children.filter((c) => c.cell && c.cell.isConnected) : [node];
      return all[all.indexOf(node) + step];
    };
    const to = { ArrowDown: () => node.children.find((c) => c.cell && c.cell.isConnected), ArrowUp: () => node.parent, ArrowLeft: () => beside(-1), ArrowRight: () => beside(1) }[event.key];
    if (to) {
      event.preventDefault();
      const next = to();
      if (next && next.cell && next.cell.isConnected) {
        node.cell.tabIndex = -1;
        next.cell.tabIndex = 0;
        next.cell.focus();
      }
    } else if (event.key === "Enter" || event.key === " " || event.key === "Escape") {
      event.preventDefault();
      const target = event.key === "Escape" ? state.root : node;
      zoom(target);
      if (target.cell) target.cell.focus();
    }
  }

  choose(VALUES[0]);
}

/** Rows' stacks as one tree, largest parts first. */
function grow(data, value) {
  const root = { name: "all", children: [], by: new Map(), sum: 0, parent: null, kind: "all", place: "" };
  for (const row of data.rows) {
    const n = value.of(row);
    if (!n) continue;
    root.sum += n;
    for (const [stack, part] of parts(row, n)) add(data, root, stack, part);
  }
  const sort = [root];
  while (sort.length) {
    const node = sort.pop();
    node.children.sort((a, b) => b.sum - a.sum);
    sort.push(...node.children);
  }
  return root;
}

/** A row's stacks, each with its part of n: whole numbers that add up to it. */
function parts(row, n) {
  if (!row.stacks) return [[row.stack, n]];
  const all = row.stacks.reduce((sum, one) => sum + one.weight, 0);
  let sum = 0;
  let given = 0;
  return row.stacks.map((one) => {
    sum += one.weight;
    const part = Math.floor((n * sum) / all) - given;
    given += part;
    return [one.stack, part];
  });
}

function add(data, root, stack, n) {
  if (!n) return;
  let node = root;
  for (const id of stack) {
    let next = node.by.get(id);
    if (!next) {
      const frame = data.frames[id];
      next = { name: frame.name, place: frame.place, kind: frame.kind, children: [], by: new Map(), sum: 0, parent: node };
      node.by.set(id, next);
      node.children.push(next);
    }
    next.sum += n;
    node = next;
  }
}

function colour(node) {
  let hash = 0;
  for (const c of node.name.slice(0, 64)) hash = (hash * 31 + c.codePointAt(0)) % 997;
  const spread = hash / 997;
  if (node.kind === "all") return "#d5dbe2";
  if (node.kind === "program") return "#c3d3e6";
  if (node.kind === "kernel") return `hsl(${14 + spread * 12} 85% ${66 + spread * 8}%)`;
  if (node.kind === "api") return `hsl(${200 + spread * 15} 55% ${72 + spread * 8}%)`;
  return `hsl(${42 + spread * 14} 80% ${68 + spread * 10}%)`;
}
