import { ENGINE_DEFAULT } from '../src/cli/cli.ts'
import type { CliExtensions } from '../src/cli/extensions.ts'
import { CONVERSATIONS_ENGINE } from '../workloads/conversations/store/engine-default.ts'

/** The workloads that the command line can run. Each is loaded by the command that needs it. */
export const extensions: CliExtensions = {
  commands: {
    conversations: async () => (await import('../workloads/conversations/cli/commands.ts')).conversations,
    hook: async () => (await import('../workloads/conversations/cli/commands.ts')).hook,
    memories: async () => (await import('../workloads/memories/cli/commands.ts')).memories,
    webhooks: async () => (await import('../workloads/webhooks/cli/commands.ts')).webhooks,
  },
  presets: {
    conversations: {
      summary: 'learns from what you type to a coding assistant (docs/conversations.md)',
      engineDefault: CONVERSATIONS_ENGINE,
      load: () => import('../workloads/conversations/preset.ts'),
    },
    embeddings: {
      summary: 'embeds the newest version of each entry (docs/embeddings.md)',
      engineDefault: ENGINE_DEFAULT,
      load: () => import('../workloads/embeddings/preset.ts'),
    },
    escrow: {
      summary: 'seven workers on Kafka topics (docs/escrow.md)',
      engineDefault: null,
      load: () => import('../workloads/escrow/preset.ts'),
    },
    framework: {
      summary: 'workers for webhooks, embeddings and memories, and your own of the other types (docs/framework.md)',
      engineDefault: 'redis://127.0.0.1:6379',
      load: () => import('../workloads/framework/preset.ts'),
    },
    webhooks: {
      summary: 'delivers signed events to the endpoints of your users (docs/webhooks.md)',
      engineDefault: ENGINE_DEFAULT,
      load: () => import('../workloads/webhooks/preset.ts'),
    },
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
