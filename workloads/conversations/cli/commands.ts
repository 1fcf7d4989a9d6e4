/** `millrace conversations …` and `millrace hook …`, as data: what runs them is loaded by the command that is called. */
import type { ExtensionCommand } from '../../../src/cli/extensions.ts'
import { CONVERSATIONS_ENGINE } from '../store/engine-default.ts'

const WHERE = `Without --engine or MILLRACE_ENGINE it is ${CONVERSATIONS_ENGINE}.`

const LIMIT = { form: '--limit <n>', meaning: 'at most this many', kind: 'whole number', default: 50 } as const

const ID = {
  form: '<id>',
  meaning: "its id, as conversations list prints it, or the assistant's id of the session",
} as const

const list: ExtensionCommand = {
  summary: 'list conversations',
  description: 'List conversations, the latest first, with what has become of them.',
  options: [LIMIT],
  examples: [
    ['millrace conversations list', 'the latest fifty'],
    ['millrace conversations list --json | jq -r .id', 'for a script'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./show.ts')).listConversations }),
}

const show: ExtensionCommand = {
  summary: 'show one conversation',
  description: 'Show one conversation: its sanitised messages, what was replaced in them, and what was learnt.',
  arguments: [ID],
  examples: [['millrace conversations show 01K5X…', 'everything that is stored about it']],
  remarks: WHERE,
  load: async () => ({ run: (await import('./show.ts')).showConversation }),
}

const learnings: ExtensionCommand = {
  summary: 'list or search what was learnt',
  description: 'List learnings, the latest first, or search them by words, the best match first.',
  arguments: [
    { form: '[query...]', meaning: 'words that the title or the text must contain; word* matches the start' },
  ],
  options: [LIMIT],
  examples: [
    ['millrace conversations learnings', 'the latest fifty'],
    ['millrace conversations learnings pool timeout', 'those with both words'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./learnings.ts')).listLearnings }),
}

const uploads: ExtensionCommand = {
  summary: 'list what was published',
  description: 'List uploads, the latest first, with their content ids and transactions.',
  options: [LIMIT],
  examples: [
    ['millrace conversations uploads', 'the latest fifty'],
    ['millrace conversations uploads --json | jq -r .chain_tx_hash', 'for a script'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./learnings.ts')).listUploads }),
}

const forget: ExtensionCommand = {
  summary: 'remove a conversation and all that was learnt from it',
  description:
    'Remove a conversation: its messages, findings and learnings, and the jobs that name it. What is on IPFS or on a chain stays there; the command says what.',
  arguments: [ID],
  options: [
    { form: '--yes', meaning: 'really: it cannot be undone' },
    { form: '--dry-run', meaning: 'only say what would be removed' },
    { form: '--reason <text>', meaning: 'why; recorded in the audit', default: 'from the command line' },
  ],
  examples: [
    ['millrace conversations forget 01K5X… --dry-run', 'what would be removed, and what is published'],
    ['millrace conversations forget 01K5X… --yes --reason "asked to be forgotten"', 'remove it'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./forget.ts')).forget }),
}

const deploy: ExtensionCommand = {
  summary: 'deploy the contract that uploads are recorded in',
  description: 'Deploy the registry on a chain, wait until it is mined, and print its address. Once for a chain.',
  options: [
    { form: '--rpc-url <url>', meaning: 'the RPC of the chain', isRequired: true },
    {
      form: '--chain-id <n>',
      meaning: 'its id; a node of another chain is refused',
      kind: 'whole number',
      isRequired: true,
    },
    {
      form: '--key-ref <ref>',
      meaning: 'the key that pays: env:NAME, or file:PATH of a v3 keystore',
      isRequired: true,
    },
  ],
  examples: [
    [
      'millrace conversations deploy --rpc-url http://127.0.0.1:8545 --chain-id 31337 --key-ref env:WALLET_KEY',
      'the address for "upload" in the configuration',
    ],
  ],
  load: async () => ({ run: (await import('./deploy.ts')).deploy }),
}

export const conversations: ExtensionCommand = {
  summary: 'list, search or forget conversations',
  description:
    'What the conversation pipeline has stored: conversations, what was learnt from them, what was published.',
  examples: [
    ['millrace conversations list', 'the latest conversations'],
    ['millrace conversations learnings timeout', 'search what was learnt'],
  ],
  remarks: WHERE,
  commands: { list, show, learnings, uploads, forget, deploy },
}

const install: ExtensionCommand = {
  summary: 'print or write the settings for a coding assistant',
  description:
    "Print a coding assistant's settings with the hook added for prompts and answers, or write them. Everything else in the file stays, and the file before is kept beside it.",
  options: [
    { form: '--settings <file>', meaning: 'the settings of the assistant', default: '.claude/settings.json' },
    {
      form: '--command <text>',
      meaning: 'the command that the assistant runs; default: this Node with the built hook',
    },
    { form: '--write', meaning: 'write the file instead of printing it' },
  ],
  examples: [
    ['millrace hook install', 'print the settings of this project'],
    ['millrace hook install --settings ~/.claude/settings.json --write', 'for all your projects'],
  ],
  load: async () => ({ run: (await import('./hook-install.ts')).installHook }),
}

export const hook: ExtensionCommand = {
  summary: 'install the hook that records prompts',
  description: 'The hook of the conversation pipeline: millrace-hook, which coding assistants call for each prompt.',
  examples: [['millrace hook install --write', 'for the assistant of this project']],
  commands: { install },
}
