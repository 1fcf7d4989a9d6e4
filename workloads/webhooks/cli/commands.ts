/** `millrace webhooks …`, as data: what runs it is loaded by the command that is called. */
import type { ExtensionCommand, ExtensionOption } from '../../../src/cli/extensions.ts'

const WHERE = 'Without --engine or MILLRACE_ENGINE it is sqlite:./millrace.db.'

const ID = { form: '<id>', meaning: 'its id, as webhooks list prints it' } as const

const ALLOW: ExtensionOption = {
  form: '--allow <origins...>',
  meaning: 'origins that may be plain http or private, such as http://127.0.0.1:8080',
}

const add: ExtensionCommand = {
  summary: 'add an endpoint and print its secret',
  description:
    'Add an endpoint that gets events, and print the secret that signs them. The secret is printed only once.',
  arguments: [{ form: '<url>', meaning: 'where to send: https, and a public address' }],
  options: [
    { form: '--events <names...>', meaning: 'events: exact, order.*, or * (default: *)' },
    {
      form: '--max-failures <n>',
      meaning: 'deliveries that may fail for good within 24 hours before it is disabled (default: 10)',
      kind: 'whole number',
    },
    { form: '--org <id>', meaning: 'gets the events of this organisation only' },
    { form: '--workspace <id>', meaning: 'and of this workspace only' },
    { form: '--description <text>', meaning: 'a note for people' },
    ALLOW,
  ],
  examples: [
    ['millrace webhooks add https://example.com/hooks --events order.paid order.sent', 'two kinds of events'],
    ['millrace webhooks add http://127.0.0.1:8080/ --allow http://127.0.0.1:8080', 'a receiver on this machine'],
  ],
  remarks: `${WHERE}\nThe worker needs the same --allow in its configuration: see docs/webhooks.md.`,
  load: async () => ({ run: (await import('./endpoints.ts')).addEndpoint }),
}

const list: ExtensionCommand = {
  summary: 'list endpoints',
  description: 'List endpoints with what they want and how their deliveries went.',
  examples: [
    ['millrace webhooks list', 'all of them'],
    ['millrace webhooks list --json | jq -r .id', 'for a script'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./endpoints.ts')).listEndpoints }),
}

const show: ExtensionCommand = {
  summary: 'show one endpoint',
  description: 'Show one endpoint, without its secret, and its latest deliveries.',
  arguments: [ID],
  examples: [['millrace webhooks show 01K5X…', 'everything about it']],
  remarks: WHERE,
  load: async () => ({ run: (await import('./endpoints.ts')).showEndpoint }),
}

const test: ExtensionCommand = {
  summary: 'send a test event now',
  description: 'Send a signed webhook.test event now, and print the status and the latency. Exits 1 when it fails.',
  arguments: [ID],
  options: [ALLOW],
  examples: [['millrace webhooks test 01K5X…', 'does the receiver answer?']],
  remarks: WHERE,
  load: async () => ({ run: (await import('./endpoints.ts')).testEndpoint }),
}

const enable: ExtensionCommand = {
  summary: 'enable an endpoint',
  description: 'Enable an endpoint. Its failures so far no longer count.',
  arguments: [ID],
  examples: [['millrace webhooks enable 01K5X…', 'after the receiver was repaired']],
  remarks: WHERE,
  load: async () => ({ run: (await import('./endpoints.ts')).enableEndpoint }),
}

const disable: ExtensionCommand = {
  summary: 'disable an endpoint',
  description: 'Disable an endpoint: it gets no events. Deliveries that were tried become dead letters.',
  arguments: [ID],
  options: [{ form: '--reason <text>', meaning: 'why', default: 'disabled by hand' }],
  examples: [['millrace webhooks disable 01K5X… --reason "receiver is moving"', 'until it is enabled again']],
  remarks: WHERE,
  load: async () => ({ run: (await import('./endpoints.ts')).disableEndpoint }),
}

const rotate: ExtensionCommand = {
  summary: 'replace the secret of an endpoint',
  description: 'Print a new secret. The old one signs too for a while, so that the receiver can change in between.',
  arguments: [ID],
  options: [{ form: '--keep <duration>', meaning: 'how long the old one signs too', kind: 'duration', default: '24h' }],
  examples: [
    ['millrace webhooks rotate 01K5X…', 'both sign for a day'],
    ['millrace webhooks rotate 01K5X… --keep 0s', 'the old one has leaked: only the new one signs'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./endpoints.ts')).rotateSecret }),
}

const deliveries: ExtensionCommand = {
  summary: 'list attempts to deliver',
  description: 'List attempts, the latest first, with their status, code and latency.',
  arguments: [{ form: '[id]', meaning: 'of this endpoint only' }],
  options: [
    { form: '--status <status>', meaning: 'only these', choices: ['success', 'failed'] },
    { form: '--delivery <id>', meaning: 'the attempts of one delivery' },
    { form: '--limit <n>', meaning: 'at most this many', kind: 'whole number', default: 50 },
  ],
  examples: [
    ['millrace webhooks deliveries', 'the latest fifty'],
    ['millrace webhooks deliveries 01K5X… --status failed', 'what went wrong at one endpoint'],
  ],
  remarks: WHERE,
  load: async () => ({ run: (await import('./deliveries.ts')).listAttempts }),
}

const redeliver: ExtensionCommand = {
  summary: 'send a delivery again',
  description: 'Enqueue a delivery again, with the same delivery id, whether it failed or not.',
  arguments: [{ form: '<delivery-id>', meaning: 'its id, as webhooks deliveries prints it' }],
  examples: [['millrace webhooks redeliver 01K5Y…', 'once more']],
  remarks: WHERE,
  load: async () => ({ run: (await import('./deliveries.ts')).redeliverOne }),
}

export const webhooks: ExtensionCommand = {
  summary: 'add, test and watch webhooks',
  description: 'Endpoints that get events over HTTP, and what was delivered to them.',
  examples: [
    ['millrace webhooks add https://example.com/hooks', 'a new endpoint, and its secret'],
    ['millrace webhooks deliveries --status failed', 'what went wrong'],
    ['millrace start --preset webhooks', 'the worker that delivers, with the dashboard'],
  ],
  remarks: WHERE,
  commands: { add, list, show, test, deliveries, redeliver, enable, disable, rotate },
}
