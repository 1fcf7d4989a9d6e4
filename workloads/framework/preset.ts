/** `millrace start --preset framework`: the workers that the package has for the framework's types, and those of the user. */
import type { OpenPreset, Preset } from '../../src/cli/extensions.ts'
import type { AnyJob, Log } from '../../src/job/definition.ts'
import { redactUrl } from '../../src/job/error-record.ts'
import { checkDeclared } from '../../src/job/schedule.ts'
import type { NamedSchedule } from '../../src/keeper/timetable.ts'
import { logAlerter } from '../../src/observe/index.ts'
import { databaseBeside } from '../database/beside.ts'
import { embedderFrom } from '../embeddings/embedders/config.ts'
import { memorySchedules } from '../memories/memories.ts'
import { METRICS_PREFIX } from './exporter.ts'
import { workerHealthEndpoint } from './health.ts'
import { JOB_TYPES } from './job-types.ts'
import { llmFrom, loadSettings } from './preset/config.ts'
import { openWorkers } from './preset/workers.ts'
import { housekeepingSchedules } from './schedules.ts'

export const preset: Preset = {
  takes: ['config', 'jobs'],

  async open({ engine, config, jobs: given, log, clock }) {
    const settings = loadSettings(config)
    const embedder = embedderFrom(settings.embedder, { clock, log })
    const { llm, name: model } = llmFrom(settings.model, { clock, log })
    const database = databaseBeside(engine, settings.database)
    const workers = await openWorkers({ database, settings, embedder, llm, clock, log })
    const jobs = joined(given, workers.jobs).map(scheduled)
    const places = { engine: redactUrl(engine), database: redactUrl(database) }
    log.info('Worker framework', { ...places, embedder: embedder.model, model, types: jobs.map(({ type }) => type) })
    tellMissing(jobs, log)
    return {
      workers: [{ engine, jobs }],
      metricsPrefix: METRICS_PREFIX,
      alerter: logAlerter(log),
      instruments: workers.instruments,
      healthEndpoints: { '/worker-health': workerHealthEndpoint },
      duties: workers.duties,
      examples: examplesFor(engine, database),
      close: workers.close,
    }
  },
}

/** A worker of the user replaces the one of the package. */
function joined(given: readonly AnyJob[], own: readonly AnyJob[]): readonly AnyJob[] {
  const types = new Set(given.flatMap(typesOf))
  return [...given, ...own.filter(({ type }) => !types.has(type))]
}

/** A queue of many names handles those too. */
function typesOf({ type, byName }: AnyJob): readonly string[] {
  return byName === null ? [type] : [type, ...byName.keys()]
}

const SCHEDULES: ReadonlyMap<string, NamedSchedule> = new Map(
  [...housekeepingSchedules, ...memorySchedules].map((schedule) => [schedule.type, schedule]),
)

/** The schedule of its type, unless it has one. Without a worker there is none: its jobs would pile up. */
function scheduled(job: AnyJob): AnyJob {
  const declared = SCHEDULES.get(job.type)
  if (declared === undefined || job.schedule !== null) return job
  const { type, ...schedule } = declared
  return { ...job, schedule: checkDeclared(type, schedule) }
}

function tellMissing(jobs: readonly AnyJob[], log: Log): void {
  const handled = new Set(jobs.flatMap(typesOf))
  const types = Object.values(JOB_TYPES).filter((type) => !handled.has(type))
  if (types.length === 0) return
  log.warn(
    'These types have no worker here, and their jobs wait; name modules with your own: millrace start workers.ts …',
    {
      types,
    },
  )
}

function examplesFor(engine: string, database: string): OpenPreset['examples'] {
  const at = `--engine '${redactUrl(engine)}'`
  const texts = '{"namespace":"documents","items":[{"sourceId":"1","text":"Backups run at two."}]}'
  return [
    [`millrace enqueue embedding-batch '${texts}' ${at}`, 'a text becomes a vector'],
    [`millrace webhooks add https://example.com/hooks --engine '${redactUrl(database)}'`, 'an endpoint for webhooks'],
    [`millrace enqueue webhook-dispatch '{"webhookId":"<id>","payload":{"order":7}}' ${at}`, 'a delivery to it'],
    ['curl <url>/worker-health', 'redis, workers, queues, deadLetters'],
    [`millrace dead list ${at}`, 'what failed for good'],
  ]
}
