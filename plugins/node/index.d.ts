/** Calls that came from one place. */
export interface Caller {
  call: string;
  calls: number;
  /** Native functions, innermost first. */
  frames: string[];
}

/** The system calls of one block. */
export class Counts {
  /** Why the counts are too low, or null. */
  readonly incomplete: string | null;
  /** Each call that was made, with its count. */
  readonly byName: Record<string, number>;
  readonly callers: Caller[];
  /**
   * How often the call of this name was made; 'total' is all of them but returns of signal handlers. The name of an older
   * call stands as well for what libraries make of it today: 'open' for openat; `byName` tells them apart.
   */
  of(name: string): number;
  /** The calls that `of(name)` counts. */
  standsFor(name: string): string[];
}

/** Calls can't be counted here; the message says why. */
export class NotCounted extends Error {}

export type Counted<T> = { value: T; skipped: null; counts: Counts } | { value: T; skipped: string; counts?: undefined };

export type Limits = Record<string, number>;

export function calls<T>(block: () => Promise<T>): Promise<Counted<T>>;
export function calls<T>(block: () => T): Counted<T>;
export function assertCalls<T>(limits: Limits, block: () => T): T;
export function limitCalls<C, R>(limits: Limits, test: (t: C) => R): (t: C) => R;
