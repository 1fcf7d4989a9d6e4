import type { CliExtensions } from '../src/cli/extensions.ts'
import { conversations, hook } from '../workloads/conversations/cli/commands.ts'

/** The workloads that the command line can run. Each is loaded by the command that needs it. */
export const extensions: CliExtensions = {
  commands: { conversations, hook },
  presets: {
    conversations: () => import('../workloads/conversations/preset.ts'),
    escrow: () => import('../workloads/escrow/preset.ts'),
  },
  serving: () => import('../workloads/escrow/serving.ts'),
  jobTables: () => import('../workloads/job-tables/commands.ts'),
}
