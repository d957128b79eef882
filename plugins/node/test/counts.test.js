'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const { test } = require('node:test');
const { calls, limitCalls, assertCalls, NotCounted } = require('..');

const skip = calls(() => {}).skipped ?? false;

test('a block has its calls', { skip }, () => {
  const { value, counts } = calls(() => fs.readFileSync('/proc/self/comm', 'utf8'));
  assert.equal(value, 'node\n');
  assert.equal(counts.of('openat'), 1);
  assert.match(String(counts), /openat: .*open/);
  assert.doesNotMatch(String(counts), /0x/, 'frames without names');
  assert.throws(() => counts.of('opneat'), TypeError);
  // What is called open is made as openat.
  assert.equal(counts.of('open'), 1);
  assert.throws(() => assertCalls({ open: 0 }, () => fs.readFileSync('/proc/self/comm')), /open: 1 calls, .* x openat: /s);
});

test('a limit holds', limitCalls({ openat: 1 }, () => fs.readFileSync('/proc/self/comm')));

test('a limit that is broken is told, with who broke it', { skip }, () => {
  const twice = () => fs.readFileSync('/proc/self/comm') + fs.readFileSync('/proc/self/comm');
  assert.throws(() => assertCalls({ openat: 1 }, twice), /openat: 2 calls, 1 is the limit\n.* x openat: /s);
  assert.throws(() => limitCalls({ openat: 1 }, twice)(), (error) => !/x (read|close)/.test(error.message), 'its callers alone');
  assert.throws(() => limitCalls({ openat: 1 }, twice)(), /openat: 2 calls/);
  assert.throws(() => limitCalls({ opneat: 1 }, twice), TypeError);
});

test('an error leaves the block', { skip }, () => {
  assert.throws(() => calls(() => { throw new RangeError('x'); }), RangeError);
  assert.equal(calls(() => fs.existsSync('/')).counts.of('access') + calls(() => fs.existsSync('/')).counts.of('statx') > 0, true);
});

test('blocks lie in one another', { skip }, () => {
  const outer = calls(() => {
    fs.statSync('/');
    return calls(() => fs.statSync('/')).counts.of('statx');
  });
  assert.equal(outer.value, 1);
  assert.equal(outer.counts.of('statx'), 2);
});

test('an asynchronous block counts until it has settled', { skip }, async () => {
  const block = calls(async () => {
    await new Promise((done) => setTimeout(done, 5));
    fs.statSync('/');
  });
  assert.throws(() => calls(() => {}), /await it first/);
  assert.equal((await block).counts.of('statx'), 1);
  await assert.rejects(calls(async () => { throw new RangeError('x'); }), RangeError);
});

test('what is not counted is said', () => {
  assert.equal(new NotCounted('no').name, 'NotCounted');
});
