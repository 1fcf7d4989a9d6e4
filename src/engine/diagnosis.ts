/** One thing that was looked at. A reader acts on `advice`; a program on `severity` and `subject`. */
export interface Finding {
  /** `error`: jobs are lost, stuck or in danger now. `warning`: someone should look, and may decide to leave it. */
  readonly severity: 'ok' | 'warning' | 'error'
  /** What was looked at, in a word or two; several findings may share one. */
  readonly subject: string
  readonly detail: string
  /** What to do; null exactly when the severity is `ok`. */
  readonly advice: string | null
}

export interface DiagnoseOptions {
  /** Also reads the whole store for damage, which may take minutes. */
  readonly deep?: boolean
  /** By type, how many jobs may wait: more than these are a warning and an error. For engines that tell how far behind they are. */
  readonly lag?: Readonly<Record<string, { readonly warning: number; readonly critical: number }>>
  /** The longest that a handler takes, for engines that end a handler whose work moves elsewhere. */
  readonly handlerMs?: number
}
