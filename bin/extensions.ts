import type { CliExtensions } from '../src/cli/extensions.ts'
import { conversations, hook } from '../workloads/conversations/cli/commands.ts'
import { memories } from '../workloads/memories/cli/commands.ts'
import { webhooks } from '../workloads/webhooks/cli/commands.ts'

/** The workloads that the command line can run. Each is loaded by the command that needs it. */
export const extensions: CliExtensions = {
  commands: { conversations, hook, memories, webhooks },
  presets: {
    conversations: () => import('../workloads/conversations/preset.ts'),
    escrow: () => import('../workloads/escrow/preset.ts'),
    webhooks: () => import('../workloads/webhooks/preset.ts'),
  },
  serving: () => import('../workloads/escrow/serving.ts'),
  pages: {
    tables: () => import('../workloads/job-tables/http/serving.ts'),
    webhooks: () => import('../workloads/webhooks/http/serving.ts'),
  },
  jobTables: () => import('../workloads/job-tables/commands.ts'),
  workloads: {
    embeddings: async () => {
      const [{ migrationOf }, { embeddingsSchema }] = await Promise.all([
        import('../workloads/database/commands.ts'),
        import('../workloads/embeddings/vectors/schema.ts'),
      ])
      return migrationOf(embeddingsSchema)
    },
    memories: async () => {
      const [{ migrationOf }, { memoriesSchema }] = await Promise.all([
        import('../workloads/database/commands.ts'),
        import('../workloads/memories/schema.ts'),
      ])
      return migrationOf(memoriesSchema)
    },
    webhooks: async () => {
      const [{ migrationOf }, { webhooksSchema }] = await Promise.all([
        import('../workloads/database/commands.ts'),
        import('../workloads/webhooks/store/schema.ts'),
      ])
      return migrationOf(webhooksSchema)
    },
  },
}
