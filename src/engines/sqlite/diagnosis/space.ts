/** Free pages inside the file: whether they are ever given back. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { formatBytes, ok, warning } from '../../../engine/findings.ts'
import type { Connection } from '../database.ts'
import { readPages } from '../retention.ts'

const MIB = 1024 * 1024
/** Less than this is used up by the next jobs before anybody would miss it. */
const FREE_BYTES_MIN = 16 * MIB
const FREE_PART_MAX = 0.5

export function lookAtSpace(connection: Connection, freeBytesMin = FREE_BYTES_MIN): Finding {
  const { pages, free, bytes, vacuum } = readPages(connection)
  const share = `${formatBytes(free * bytes)} of ${formatBytes(pages * bytes)} in the file are free`
  if (vacuum === 2) return ok('free space', `${share}; retention gives it back in small steps`)
  if (free * bytes < freeBytesMin || free / pages <= FREE_PART_MAX) {
    return ok('free space', `${share} for the next jobs; the file itself does not shrink`)
  }
  return warning(
    'free space',
    `${share}, and it is not given back: the file was not made by Millrace, or by a version before retention`,
    'Stop every process on the file and run PRAGMA auto_vacuum = INCREMENTAL; VACUUM; on it once. It needs as much free disk as the jobs take.',
  )
}
