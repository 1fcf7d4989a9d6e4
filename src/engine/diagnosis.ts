/** One thing that was checked. A reader acts on `advice`; a program on `severity` and `subject`. */
export interface Finding {
  /** `error`: jobs are lost, stuck or in danger now. `warning`: look at it, and decide whether it may stay. */
  readonly severity: 'ok' | 'warning' | 'error'
  /** What was checked, in a word or two; several findings may share one. */
  readonly subject: string
  readonly detail: string
  /** What to do; null exactly when the severity is `ok`. */
  readonly advice: string | null
}

export interface DiagnoseOptions {
  /** Also reads the whole store for damage, which may take minutes. */
  readonly deep?: boolean
  /** By type, how many jobs may wait before it is a warning, and an error. Kafka only: its backlog is bounded by retention, and an operator alone knows how much is normal. */
  readonly lag?: Readonly<Record<string, { readonly warning: number; readonly critical: number }>>
  /** The longest that a handler takes. Kafka only: it aborts a handler when its partition moves to another worker. */
  readonly handlerMs?: number
}
