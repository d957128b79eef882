// Elements and figures. Whatever comes from a recording goes into the page as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

const el = (name, attributes, ...children) => put(document.createElement(name), attributes, children);
const drawn = (name, attributes, ...children) => put(document.createElementNS(SVG, name), attributes, children);
const at = (id) => document.getElementById(id);

function count(n) {
  return n === null || n === undefined ? "?" : n.toLocaleString("en").replaceAll(",", "\u202f");
}

function counted(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Nanoseconds in the unit that suits, with three digits. */
function time(ns) {
  if (ns === null || ns === undefined) return "not known";
  const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]];
  for (const [unit, size] of units) if (ns >= size) return `${digits(ns / size)} ${unit}`;
  return `${digits(ns)} ns`;
}

function digits(x) {
  if (x >= 100 || Number.isInteger(x)) return count(Math.round(x));
  return x.toFixed(x >= 10 ? 1 : 2);
}

function percent(share) {
  if (share === null || share === undefined) return null;
  const p = share * 100;
  return p > 0 && p < 0.1 ? "below 0.1 %" : `${p >= 10 ? Math.round(p) : p.toFixed(1)} %`;
}

/** One line: what would hide, reorder or act is shown as an escape. */
function shown(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

function place(user) {
  if (!user) return "";
  const line = user.file ? `${user.file}${user.line ? `:${user.line}` : ""}` : user.module || "";
  return shown(line ? `${user.function}  ${line}` : user.function);
}

/** Values that can be drawn, and how one of them is written. */
const VALUES = [
  { name: "toll", label: "toll", of: (row) => row.toll_ns || 0, write: time },
  { name: "waited", label: "waited", of: (row) => row.waited_ns || 0, write: time },
  { name: "calls", label: "calls", of: (row) => row.calls, write: count },
  { name: "needless", label: "cost of needless calls", of: (row) => row.needless_ns, write: time },
];
