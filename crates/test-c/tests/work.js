'use strict';
// Work of Node's whose calls are counted by systoll (`count`) or by strace between two marks (`plain`).
const fs = require('node:fs');
const { spawnSync } = require('node:child_process');
const { calls } = require(process.env.SYSTOLL_NODE);

const works = {
  files() {
    for (let i = 0; i < 20; i++) fs.writeFileSync(`${process.env.WORK}/file`, fs.readFileSync('/proc/self/comm'));
  },
  stats() {
    for (let i = 0; i < 20; i++) fs.existsSync('/nowhere') || fs.statSync('/');
  },
  folder() {
    return fs.readdirSync('/proc/self/task');
  },
};

const [, , how, name] = process.argv;
const work = works[name];
for (let i = 0; i < 3; i++) work();
if (how === 'plain') {
  const mark = () => fs.statSync('/systoll-mark', { throwIfNoEntry: false });
  mark();
  work();
  mark();
} else {
  const { counts, skipped } = calls(work);
  if (skipped) console.log(`skipped: ${skipped}`);
  else for (const [call, n] of Object.entries(counts.byName)) console.log(`${call} ${n}`);
}
