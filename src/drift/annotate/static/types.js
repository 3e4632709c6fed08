// @ts-check
/**
 * The data that the server sends; see `drift.annotate.views`.
 *
 * A label is the name of a class or, of a sentence, a list of entities: first word, the word after it, type.
 * @typedef {{label: any, given: boolean, flag: boolean, note: string, skipped: boolean,
 *   votes: Object<string, string>}} Marks
 * @typedef {Marks & {row: number, text: string, audit: boolean, reason: string, guess: any,
 *   confidence: number|null, chances: [string, number][], words?: string[], gaps?: string[]}} Question
 * @typedef {Marks & {row: number, text: string, predicted: any, confidence: number|null,
 *   shown_label: string|null, shown_prediction: string|null}} ListRow
 * @typedef {{name: string, guideline: string, labels: number, share: number|null}} ClassInfo
 * @typedef {{labels: number, accuracy: number|null, low: number, high: number, changed: number|null}} Round
 * @typedef {{row: number, text: string, before: string, after: string}} Change
 * @typedef {{version: number, unit: string, texts: number, usable: number, labels: number, skipped: number, flagged: number,
 *   training: boolean, rounds: number, can_undo: boolean, classes: ClassInfo[],
 *   estimate: {accuracy: number|null, low: number, high: number, right: number, audited: number},
 *   audit_every: number, curve: Round[], advice: {verdict: string, text: string}, changed: Change[],
 *   changed_count: number, sources: string[], initial: boolean}} Progress
 * @typedef {{state: string, out: string, labels: number, error: string, run?: string, lines?: string[], fit?: string,
 *   predict?: string}} FinishStatus
 */
export {};
