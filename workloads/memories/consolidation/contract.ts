import { z } from 'zod'

/** The prompt of a cluster must fit a model, and a cluster can have all of them. */
export const MEMORIES_MAX = 200

const name = z.string().min(1).max(200)

export const consolidationPayload = z.strictObject({
  workspaceId: name,
  userId: name,
  memoryIds: z.array(name).max(MEMORIES_MAX),
  /** `merge` halves the importance of the memories it merges. Any other type leaves them as they are. */
  consolidationType: name,
})

export type MemoryConsolidationData = z.infer<typeof consolidationPayload>

export interface SkippedMemory {
  readonly id: string
  readonly reason: 'no vector' | 'other dimension'
}

export type MemoryConsolidationResult =
  | {
      readonly consolidated: false
      readonly reason: 'insufficient_memories'
      /** Ids that the owner has no memory for. */
      readonly memoriesUnknown: number
    }
  | {
      readonly consolidated: true
      /** With clusters of one memory, which are skipped. */
      readonly clustersProcessed: number
      readonly clustersSkipped: number
      /** Clusters that another job had merged before. */
      readonly clustersMergedBefore: number
      readonly memoriesCreated: number
      readonly memoriesIndexed: number
      readonly sourceMemoriesProcessed: number
      readonly memoriesUnknown: number
      /** Memories that could not be compared. Consolidate them again once they are embedded. */
      readonly memoriesSkipped: readonly SkippedMemory[]
    }
