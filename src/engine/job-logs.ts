/** What handlers say, kept with their jobs. An engine stores the lines unchanged and never parses them. */
export interface JobLogs {
  /**
   * Adds lines to jobs that are stored; lines of a job that is unknown or removed are dropped. No fence: a handler that has
   * lost its lease still says what it does, and its lines name the attempt and the worker. Of each job the newest `lines`
   * and `bytes` are kept (UTF-8), at least the last line; what is added is within them. A rejection means unknown.
   */
  append(said: readonly SaidLines[], keep: { readonly lines: number; readonly bytes: number }): Promise<void>
  /** Oldest first. They are removed with their job, by whatever removes it. */
  read(id: string): Promise<readonly KeptLine[]>
}

export interface SaidLines {
  readonly job: { readonly id: string; readonly type: string }
  /** How many lines were dropped before these; they are counted. */
  readonly skipped: number
  /** At least one, each JSON text that begins with `{"`. */
  readonly lines: readonly string[]
}

export interface KeptLine {
  /** Counts every line that was said or skipped, from 1. */
  readonly seq: number
  readonly line: string
}

/** The newest of a job's lines, oldest first, that fit. */
export function newestLines(
  lines: readonly KeptLine[],
  keep: { readonly lines: number; readonly bytes: number },
): readonly KeptLine[] {
  const last = lines.at(-1)?.seq ?? 0
  let bytes = 0
  const first = lines.findLastIndex(({ seq, line }) => {
    bytes += Buffer.byteLength(line)
    return seq !== last && (seq <= last - keep.lines || bytes > keep.bytes)
  })
  return lines.slice(first + 1)
}
