/** `millrace start --preset conversations`: the worker of the three jobs, and what runs beside them. */
import type { Preset } from '../../src/cli/extensions.ts'
import { messageOf, OptionError } from '../../src/errors.ts'
import type { Log } from '../../src/job/definition.ts'
import { logAlerter } from '../../src/observe/index.ts'
import { loadConfig } from './config.ts'
import type { UploadSettings } from './options.ts'
import { openPipeline } from './pipeline.ts'
import { conversationRules } from './queue/alert-rules.ts'
import { collectMetrics } from './queue/metrics.ts'
import { queueInstrument, queueRoutes } from './queue/serving.ts'
import { CONVERSATIONS_ENGINE } from './store/engine-default.ts'
import { conversationsFile } from './store/location.ts'
import { openSigner } from './upload/signing.ts'

export const preset: Preset = {
  takes: ['config'],

  async open({ engine, config, log, clock }) {
    if (conversationsFile(engine).database === ':memory:') {
      throw new OptionError('the hook cannot write to a database in memory; give --engine sqlite:./file.db')
    }
    // Like the hook: the file, its WAL and the secret are for their owner only.
    process.umask(0o077)
    const settings = loadConfig(config)
    await checkUpload(settings.upload, log)
    const pipeline = openPipeline({ engine, ...settings, log, clock })
    const { model, upload } = pipeline.parts
    const metrics = (windowMs?: number) => collectMetrics(pipeline.database, windowMs, { clock })
    log.info('Conversation pipeline', {
      engine,
      model: model.name,
      uploads: upload === null ? 'off' : `to chain ${upload.chainId}`,
    })
    return {
      // Uploads are the least urgent; without ageing a busy day would leave them waiting.
      workers: [{ engine, jobs: pipeline.jobs, options: { ageing: '10m' } }],
      alertRules: conversationRules(),
      // Another process may have run what failed: the rules judge the file, not this process.
      stats: { collect: async (windowMs) => metrics(windowMs) },
      alerter: logAlerter(log),
      instruments: [queueInstrument(metrics)],
      routes: () => queueRoutes(metrics),
      duties: pipeline.duties,
      examples: examplesFor(engine),
      close: async () => pipeline.close(),
    }
  },
}

/** A missing package or key stops the start: otherwise every upload would use up its attempts. */
async function checkUpload(upload: UploadSettings | undefined, log: Log): Promise<void> {
  if (upload === undefined) return
  try {
    await openSigner(upload.privateKeyRef, upload, log)
  } catch (error) {
    throw new OptionError(`'upload' cannot be used: ${messageOf(error)}`)
  }
}

function examplesFor(engine: string): readonly (readonly [string, string])[] {
  const at = engine === CONVERSATIONS_ENGINE ? '' : ` --engine '${engine}'`
  const prompt = '{"event":"UserPromptSubmit","conversation_id":"try","content":"Always test the restore of a backup."}'
  return [
    [`echo '${prompt}' | npx millrace-hook${at}`, 'one prompt, through the whole pipeline'],
    [`millrace conversations learnings${at}`, 'what was learnt'],
    ['millrace hook install', 'the settings that make a coding assistant call the hook'],
  ]
}
