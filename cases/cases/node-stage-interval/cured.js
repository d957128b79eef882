'use strict';
const { createHash } = require('crypto');

class Stage {
  constructor(name, work, next) {
    this.queue = []; this.work = work; this.next = next; this.name = name; this.busy = false;
  }
  push(item) {
    this.queue.push(item);
    this.tick();
  }
  async tick() {
    if (this.busy) return;
    this.busy = true;
    while (this.queue.length) this.next(await this.work(this.queue.shift()));
    this.busy = false;
  }
  stop() {}
}

const later = (ms) => new Promise((r) => setTimeout(r, ms));
let wake;
const store = new Stage('store', async (x) => { await later(2); return x; }, (x) => wake(x));
const sign = new Stage('sign', async (x) => ({ ...x, sig: createHash('sha256').update(x.text).digest('hex').slice(0, 12) }), (x) => store.push(x));
const parse = new Stage('parse', async (x) => { await later(2); return { id: x, text: `order ${x * 37 % 101}` }; }, (x) => sign.push(x));

async function main() {
  for (let i = 0; i < 15; i++) {
    const done = new Promise((r) => { wake = r; });
    parse.push(i);              // the next order comes when this one is confirmed
    const x = await done;
    console.log(x.id, x.text, x.sig);
  }
  for (const s of [parse, sign, store]) s.stop();
}
main();
