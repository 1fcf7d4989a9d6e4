/** `millrace memories …`, as data: what runs it is loaded by the command that is called. */
import type { ExtensionCommand, ExtensionOption } from '../../../src/cli/extensions.ts'

export const MEMORIES_ENGINE = 'sqlite:./millrace.db'

const WHERE = `Without --engine or MILLRACE_ENGINE it is ${MEMORIES_ENGINE}.`

const LIMIT: ExtensionOption = {
  ...{ form: '--limit <n>', meaning: 'at most this many', kind: 'whole number', default: 50 },
}
const WORKSPACE: ExtensionOption = { form: '--workspace <id>', meaning: 'of this workspace only' }
const USER: ExtensionOption = { form: '--user <id>', meaning: 'of this user only' }

const list: ExtensionCommand = {
  summary: 'list memories',
  description: 'List memories, the latest first.',
  options: [WORKSPACE, USER, { form: '--type <type>', meaning: 'of this type only, such as semantic' }, LIMIT],
  examples: [
    ['millrace memories list --workspace w1 --user ann', 'the latest fifty of one user'],
    ['millrace memories list --type semantic --json', 'what consolidations have written, for a script'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./memories.ts')).listMemories }),
}

const search: ExtensionCommand = {
  summary: 'search memories by words',
  description: 'Search the memories of one user by words, the best match first.',
  arguments: [{ form: '<query...>', meaning: 'words; a memory with any of them is found' }],
  options: [
    { ...WORKSPACE, isRequired: true },
    { ...USER, isRequired: true },
    { ...LIMIT, default: 10 },
  ],
  examples: [['millrace memories search --workspace w1 --user ann green tea', 'what is known about it']],
  remarks: `${WHERE}\nA search by meaning needs the embedder of your program: memories.search() there.`,
  load: async () => ({ run: (await import('./memories.ts')).searchByWords }),
}

const show: ExtensionCommand = {
  summary: 'show one memory',
  description: 'Show one memory, what it was merged from, and what was merged from it.',
  arguments: [{ form: '<id>', meaning: 'its id, as memories list prints it' }],
  examples: [['millrace memories show 6f1c2c1e-0d7a-4c0f-9a3b-5d2e8f471b60', 'everything that is stored about it']],
  remarks: WHERE,
  load: async () => ({ run: (await import('./memories.ts')).showMemory }),
}

const forget: ExtensionCommand = {
  summary: 'remove memories and what was merged from them',
  description: 'Remove memories: their text, their vectors, and the syntheses that were written from them.',
  arguments: [{ form: '<ids...>', meaning: 'their ids, as memories list prints them' }],
  options: [
    { form: '--yes', meaning: 'really: it cannot be undone' },
    { form: '--dry-run', meaning: 'only say what would be removed' },
    { form: '--reason <text>', meaning: 'why; recorded in the audit', default: 'from the command line' },
  ],
  examples: [
    ['millrace memories forget 6f1c2c1e-0d7a-4c0f-9a3b-5d2e8f471b60 --dry-run', 'what would be removed'],
    ['millrace memories forget 6f1c2c1e-0d7a-4c0f-9a3b-5d2e8f471b60 --yes', 'remove it'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./forget.ts')).forgetMemories }),
}

export const memories: ExtensionCommand = {
  summary: 'list, search or forget memories',
  description: 'What the memories workload has stored, of all users.',
  examples: [
    ['millrace memories list', 'the latest memories'],
    ['millrace memories search --workspace w1 --user ann tea', 'search those of one user'],
  ],
  remarks: WHERE,
  commands: { list, search, show, forget },
}
