// Delivers events to a collector that starts later and goes away now and then.
const net = require('net');
const fs = require('fs');

const SOCK = './collector.sock';
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));

function collector(received) {
  const server = net.createServer((c) => {
    let text = '';
    c.setEncoding('utf8');
    c.on('data', (d) => { text += d; });
    c.on('end', () => { received.push(...text.trim().split('\n')); c.end('ok\n'); });
  });
  return {
    up: () => new Promise((r) => server.listen(SOCK, r)),
    down: () => new Promise((r) => server.close(r)),
  };
}

function deliver(lines) {
  return new Promise((resolve, reject) => {
    const c = net.connect({ path: SOCK, allowHalfOpen: true });
    c.on('error', reject);
    c.on('connect', () => c.end(lines.join('\n') + '\n'));
    c.on('data', () => {});
    c.on('end', () => resolve());
  });
}

async function withBackoff(action, { first = 4, max = 200 } = {}) {
  for (let pause = first, tries = 1; ; pause = Math.min(pause * 2, max), tries++) {
    try {
      await action();
      return tries;
    } catch (e) {
      if (e.code !== 'ECONNREFUSED' && e.code !== 'ENOENT') throw e;
      await sleep(pause);
    }
  }
}

async function main() {
  const received = [];
  let retried = 0;
  for (let round = 0; round < 6; round++) {
    const c = collector(received);
    const late = sleep(100 + round * 10).then(() => c.up());
    const lines = Array.from({ length: 20 }, (_, i) => `event ${round * 20 + i}`);
    if (await withBackoff(() => deliver(lines)) > 1) retried++;
    await late;
    await c.down();
  }
  fs.rmSync(SOCK, { force: true });
  console.log(`delivered ${received.length}, last "${received[received.length - 1]}", rounds with retries ${retried}`);
}

main();
