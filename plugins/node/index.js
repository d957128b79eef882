'use strict';
// System calls of a block of JavaScript, counted exactly in the thread that runs it.

const assert = require('node:assert');
const path = require('node:path');

const { native, whyNot } = load();

/** Calls can't be counted here; the message says why. */
class NotCounted extends Error {
  constructor(why) {
    super(why);
    this.name = 'NotCounted';
  }
}

function load() {
  const addon = { exports: {} };
  try {
    process.dlopen(addon, path.join(__dirname, 'libsystoll_block.so'));
  } catch (error) {
    // Another architecture or C library, or a checkout without a built library.
    return { native: null, whyNot: `the counter's library can't be loaded: ${error.message}` };
  }
  return { native: addon.exports, whyNot: null };
}

const names = new Set(native ? JSON.parse(native.names()) : []);

// What a block's callers are looked up by is kept until its counts are garbage.
const gone = new FinalizationRegistry((id) => native.forget(id));

// JavaScript's frames have addresses and no names.
const isNamed = (frame) => !/^0x[0-9a-f]+$/.test(frame);

/** The system calls of one block. */
class Counts {
  #calls;
  #madeAs;
  #total;
  #id;
  #callers = null;

  constructor(id, told) {
    this.#calls = told.calls;
    this.#madeAs = told.made_as;
    this.#total = told.total;
    this.#id = id;
    gone.register(this, id);
    /** Why the counts are too low, or null. */
    this.incomplete = told.incomplete;
  }

  /**
   * How often the call of this name was made; 'total' is all of them but returns of signal handlers. The name of an older
   * call stands as well for what libraries make of it today: 'open' for openat; `byName` tells them apart.
   */
  of(name) {
    if (name === 'total') return this.#total;
    if (!names.has(name)) throw new TypeError(`no system call is named '${name}'`);
    return this.standsFor(name).reduce((sum, call) => sum + (this.#calls[call] ?? 0), 0);
  }

  /** The calls that `of(name)` counts. */
  standsFor(name) {
    return [name, ...(this.#madeAs[name] ?? [])];
  }

  /** Each call that was made, with its count. */
  get byName() {
    return { ...this.#calls };
  }

  /** Who made the calls, most first: [{call, calls, frames}], frames being native functions. Looked up at the first use. */
  get callers() {
    const plain = ({ call, calls, frames }) => ({ call, calls, frames });
    this.#callers ??= JSON.parse(native.callers(this.#id)).map(plain);
    return this.#callers;
  }

  toString() {
    return this.told(() => true);
  }

  /** Lines of the callers of those calls whose name `these` is true of. */
  told(these) {
    const callers = this.callers.filter(({ call }) => these(call));
    const lines = callers.map((c) => `  ${c.calls} x ${c.call}: ${c.frames.filter(isNamed).slice(0, 6).join(' < ')}`);
    return lines.concat(this.incomplete ? [`  ${this.incomplete}`] : []).join('\n');
  }
}

// An asynchronous block counts what the whole thread does until it has settled: a second one meanwhile
// would be counted in both.
let waiting = false;

function begin() {
  if (waiting) throw new Error('an asynchronous block is being counted: await it first');
  return whyNot ?? native.begin() ?? null;
}

function end(skipped) {
  if (skipped !== null) return { skipped };
  const told = native.end();
  if (told === undefined) return { skipped: 'the block ended in another thread than it began in' };
  const { id, counts } = JSON.parse(told);
  return { skipped: null, counts: new Counts(id, counts) };
}

/**
 * Runs `block` and counts the system calls that this thread makes in it. Gives {value, counts, skipped}:
 * where calls can't be counted, `skipped` says why and there are no counts. For an asynchronous block
 * it gives a promise, and what else the thread does until that settles is counted too.
 */
function calls(block) {
  const skipped = begin();
  let value;
  try {
    value = block();
  } catch (error) {
    end(skipped);
    throw error;
  }
  if (typeof value?.then !== 'function') return { value, ...end(skipped) };
  waiting = true;
  const settle = () => {
    waiting = false;
    return end(skipped);
  };
  return value.then(
    (settled) => ({ value: settled, ...settle() }),
    (error) => {
      settle();
      throw error;
    },
  );
}

function check(limits, counts) {
  const over = Object.entries(limits).filter(([name, limit]) => counts.of(name) > limit);
  const broken = over.map(([name, limit]) => `${name}: ${counts.of(name)} calls, ${limit} is the limit`);
  if (broken.length === 0 && counts.incomplete === null) return;
  const names = over.flatMap(([name]) => counts.standsFor(name));
  const who = counts.told((call) => names.includes('total') || names.includes(call));
  assert.fail([...broken, who].join('\n'));
}

function checked(limits) {
  for (const [name, limit] of Object.entries(limits)) {
    if (native && name !== 'total' && !names.has(name)) throw new TypeError(`no system call is named '${name}'`);
    if (!Number.isInteger(limit) || limit < 0) throw new TypeError(`${name}: a limit is a number of calls`);
  }
}

/**
 * A test function for node:test: `test('loads', limitCalls({ openat: 1 }, (t) => { load(); }))`. Where
 * calls can't be counted, the test runs and is marked as skipped with the reason; with
 * SYSTOLL_TEST_STRICT=1 in the environment it fails.
 */
function limitCalls(limits, test) {
  checked(limits);
  const judge = (t, { value, counts, skipped }) => {
    if (skipped !== null) {
      if (process.env.SYSTOLL_TEST_STRICT === '1') throw new NotCounted(skipped);
      t?.skip?.(`system calls are not counted: ${skipped}`);
    } else {
      check(limits, counts);
    }
    return value;
  };
  return (t) => {
    const block = calls(() => test(t));
    return typeof block.then === 'function' ? block.then((b) => judge(t, b)) : judge(t, block);
  };
}

/** Runs a block and throws where it makes more calls than that; gives its value. */
function assertCalls(limits, block) {
  checked(limits);
  const judge = ({ value, counts, skipped }) => {
    if (skipped !== null) throw new NotCounted(skipped);
    check(limits, counts);
    return value;
  };
  const counted = calls(block);
  return typeof counted.then === 'function' ? counted.then(judge) : judge(counted);
}

// What is set up at the first use is no test's.
calls(() => {});

module.exports = { calls, limitCalls, assertCalls, Counts, NotCounted };
