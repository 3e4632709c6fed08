// @ts-check
/**
 * The data that the server sends; see `drift.annotate.views`.
 *
 * @typedef {{label: string|null, given: boolean, flag: boolean, note: string, skipped: boolean,
 *   votes: Object<string, string>}} Marks
 * @typedef {Marks & {row: number, text: string, audit: boolean, reason: string, guess: string|null,
 *   confidence: number|null, chances: [string, number][]}} Question
 * @typedef {Marks & {row: number, text: string, predicted: string|null, confidence: number|null}} ListRow
 * @typedef {{name: string, guideline: string, labels: number, share: number|null}} ClassInfo
 * @typedef {{labels: number, accuracy: number|null, low: number, high: number, changed: number|null}} Round
 * @typedef {{row: number, text: string, before: string, after: string}} Change
 * @typedef {{version: number, texts: number, usable: number, labels: number, skipped: number, flagged: number,
 *   training: boolean, rounds: number, can_undo: boolean, classes: ClassInfo[],
 *   estimate: {accuracy: number|null, low: number, high: number, right: number, audited: number},
 *   audit_every: number, curve: Round[], advice: {verdict: string, text: string}, changed: Change[],
 *   changed_count: number, sources: string[], initial: boolean}} Progress
 * @typedef {{state: string, out: string, labels: number, error: string, run?: string, lines?: string[], fit?: string,
 *   predict?: string}} FinishStatus
 */
export {};
