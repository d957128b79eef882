'use strict';
const fs = require('fs');
const path = require('path');
const { spawn } = require('child_process');

const dir = 'conf';
const files = fs.readdirSync(dir);
const seen = new Map();

function changed(f) {
  let text;
  try { text = fs.readFileSync(path.join(dir, f), 'utf8').trim(); } catch { return; }
  if (text === 'v0' || text === '' || seen.has(f)) return;
  seen.set(f, text);
  if (seen.size === 3) finish();
}

for (const f of files) fs.watchFile(path.join(dir, f), { interval: 10 }, () => changed(f));

// somebody edits the configuration
spawn('sh', ['-c', 'for i in 7 21 42; do sleep 0.25; echo v1 > conf/f$i.json; done'], { stdio: 'ignore' });

function finish() {
  for (const f of files) fs.unwatchFile(path.join(dir, f));
  console.log([...seen].map(([f, t]) => `${f}=${t}`).sort().join(' '));
}
