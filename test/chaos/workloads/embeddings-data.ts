/** What the jobs of the embedding chaos embed: versions of sources, so that a later one must win whatever is killed. */
import { stableUuid } from '../../../workloads/embeddings/index.ts'

export const NAMESPACE = 'chaos'
export const OLD_DIMENSIONS = 24
export const NEW_DIMENSIONS = 48
/** More than a batch holds, so that a job can be killed between two. */
const ITEMS = 40

export const sourceOf = (index: number): string => stableUuid('chaos', String(index))
export const textOfVersion = (source: string, seq: number): string => `version ${seq} of the source ${source}`

/** The sources of a job overlap with those of the jobs beside it. */
export function jobData(job: number) {
  const items = Array.from({ length: ITEMS }, (_, index) => {
    const sourceId = sourceOf((job * ITEMS) / 2 + index)
    return { sourceId, seq: job + 1, text: textOfVersion(sourceId, job + 1), metadata: { source: sourceId } }
  })
  return { items, namespace: NAMESPACE }
}

/** By source: the version that is stored after one run without kills. */
export function expectedVersions(jobs: number): ReadonlyMap<string, number> {
  const versions = new Map<string, number>()
  for (let job = 0; job < jobs; job += 1) {
    for (const { sourceId, seq } of jobData(job).items) versions.set(sourceId, seq)
  }
  return versions
}
