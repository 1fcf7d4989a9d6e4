/** The table of rates in README.md, from the same results as the page. */
import type { FamilyName } from '../contender.ts'
import { formatNumber, middleOf } from './figures.ts'
import type { FamilyResults } from './markdown.ts'

interface Shown {
  readonly contender: string
  readonly title: string
}

const SHOWN: Readonly<Record<FamilyName, readonly [ours: Shown, ...peers: Shown[]]>> = {
  sqlite: [
    { contender: 'millrace-full', title: '`synchronous=full`' },
    { contender: 'plainjob', title: 'plainjob (`synchronous=normal`)' },
  ],
  postgres: [
    { contender: 'millrace-postgres', title: '' },
    { contender: 'graphile-worker-tuned', title: 'graphile-worker with its local queue' },
    { contender: 'pg-boss', title: 'pg-boss' },
  ],
  redis: [
    { contender: 'millrace-redis', title: '' },
    { contender: 'bullmq', title: 'BullMQ' },
  ],
  kafka: [
    { contender: 'millrace-kafka', title: '' },
    { contender: 'kafkajs', title: 'kafkajs' },
  ],
}

const BEGIN = '<!-- Rates: written by npm run bench. -->'
const END = '<!-- End of rates. -->'

/** The text with its table of rates made anew. */
export function withRates(readme: string, families: readonly FamilyResults[]): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)]
  if (begin === -1 || end === -1) throw new Error(`README.md needs the lines '${BEGIN}' and '${END}'`)
  return `${readme.slice(0, begin + BEGIN.length)}\n\n${renderRates(families)}\n\n${readme.slice(end)}`
}

function renderRates(families: readonly FamilyResults[]): string {
  const rows = families.map((results) => {
    const [ours, ...peers] = SHOWN[results.family.name]
    const note = ours.title === '' ? '' : ` (${ours.title})`
    const others = peers.map(({ contender, title }) => `${title} ${rateOf(results, contender)}`)
    return `| ${results.family.title} | ${rateOf(results, ours.contender)}${note} | ${others.join(', ')} |`
  })
  return ['| | Millrace | others |', '|---|---|---|', ...rows].join('\n')
}

/** The middle of the published runs. */
function rateOf({ results }: FamilyResults, contender: string): string {
  const runs = results.find(({ scenario }) => scenario === 'drain')?.runs ?? []
  const rate = middleOf(runs.map((run) => run.contenders.find(({ name }) => name === contender)?.figures.rate))
  return rate === undefined ? 'unsteady' : `${formatNumber(rate).replaceAll('\u202f', ',')}/s`
}
