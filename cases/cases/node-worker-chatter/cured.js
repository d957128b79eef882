// Scores reviews in a worker thread, so that the main loop stays free.
const { Worker, isMainThread, parentPort } = require('worker_threads');

function score(text) {
  let s = 0;
  for (const w of text.split(' ')) {
    if (w.startsWith('good')) s += 2;
    else if (w.startsWith('bad')) s -= 3;
  }
  return s;
}

class Scorer {
  constructor() {
    this.worker = new Worker(__filename);
    this.next = 0;
    this.open = new Map();
    this.worker.on('message', ({ id, scores }) => {
      this.open.get(id)(scores);
      this.open.delete(id);
    });
  }

  ask(rows) {
    const id = this.next++;
    return new Promise((resolve) => {
      this.open.set(id, resolve);
      this.worker.postMessage({ id, rows });
    });
  }

  close() {
    return this.worker.terminate();
  }
}

function reviews(n) {
  const words = ['good', 'bad', 'goodish', 'item', 'box', 'was', 'rather', 'badly'];
  return Array.from({ length: n }, (_, i) =>
    Array.from({ length: 12 }, (_, w) => words[(i * 7 + w * w) % words.length]).join(' '));
}

async function main() {
  const worker = new Scorer();
  const all = [];
  const rows = reviews(6000);
  for (let i = 0; i < rows.length; i += 500) {
    all.push(...await worker.ask(rows.slice(i, i + 500)));
  }
  await worker.close();
  const sum = all.reduce((a, b) => a + b, 0);
  console.log(`${all.length} reviews, sum ${sum}, worst ${Math.min(...all)}, best ${Math.max(...all)}`);
}

if (isMainThread) main();
else parentPort.on('message', ({ id, rows }) => parentPort.postMessage({ id, scores: rows.map(score) }));
