// Sends batches of rows through a filter process and collects what comes back.
const { spawn } = require('child_process');
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

class Filter {
  constructor(cmd, args) {
    this.child = spawn(cmd, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.lines = [];
    this.rest = '';
    this.waiting = null;
    this.child.stdout.setEncoding('utf8');
    this.child.stdout.on('data', (d) => this.onData(d));
  }

  onData(d) {
    const parts = (this.rest + d).split('\n');
    this.rest = parts.pop();
    this.lines.push(...parts);
    if (this.waiting && this.lines.length >= this.waiting.n) {
      this.waiting.resolve();
      this.waiting = null;
    }
  }

  received(n) {
    if (this.lines.length >= n) return Promise.resolve();
    return new Promise((resolve) => { this.waiting = { n, resolve }; });
  }

  async batch(rows) {
    this.lines = [];
    this.child.stdin.write(rows.join('\n') + '\n');
    await this.received(rows.length);
    return this.lines;
  }

  close() {
    this.child.stdin.end();
    return new Promise((r) => this.child.on('close', r));
  }
}

async function main() {
  const filter = new Filter('cat', ['-u']);
  let rows = 0;
  let bytes = 0;
  for (let b = 0; b < 10; b++) {
    const batch = Array.from({ length: 50 }, (_, i) => `row;${b};${i * 17 % 13}`);
    for (const line of await filter.batch(batch)) {
      rows++;
      bytes += line.length;
    }
  }
  await filter.close();
  console.log(`${rows} rows, ${bytes} bytes`);
}

main();
