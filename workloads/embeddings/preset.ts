/** `millrace start --preset embeddings`: the embedding queue on an engine, its vectors, and a way in by HTTP. */
import type { OpenPreset, Preset } from '../../src/cli/extensions.ts'
import { capabilitiesOf } from '../../src/engine/open.ts'
import { OptionError } from '../../src/errors.ts'
import { redactUrl } from '../../src/job/error-record.ts'
import { logAlerter } from '../../src/observe/index.ts'
import { databaseBeside } from '../database/beside.ts'
import { embedderFrom } from './embedders/config.ts'
import { EMBED_TYPE } from './generate.ts'
import { loadSettings } from './service/config.ts'
import { obsoleteLetters } from './service/obsolete.ts'
import { EmbeddingService } from './service/queue.ts'
import { queueInstrument, queueRoutes } from './service/serving.ts'
import { VectorsRefused } from './vector-store.ts'
import { openVectorStore } from './vectors/store.ts'

export const preset: Preset = {
  takes: ['config'],

  async open({ engine, config, log, clock }) {
    if (!(await capabilitiesOf(engine)).latest) {
      throw new OptionError(
        `the preset 'embeddings' needs latest keys, which this engine does not have; give --engine sqlite:./file.db or another`,
      )
    }
    const settings = loadSettings(config)
    const embedder = embedderFrom(settings.embedder, { clock, log })
    const database = databaseBeside(engine, settings.database)
    await using ends = new AsyncDisposableStack()
    const vectors = await openVectorStore(database, { clock })
    ends.defer(() => vectors.close())
    const service = new EmbeddingService({ embedder, vectors, settings, clock, log })
    ends.defer(() => service.detach())
    await checkModel(service)
    log.info('Embedding queue', { engine: redactUrl(engine), vectors: redactUrl(database), embedder: embedder.model })
    const opened = ends.move()
    return {
      workers: [{ engine, jobs: [service.job] }],
      prepare: async (mill) => service.attach(mill),
      alerter: logAlerter(log),
      instruments: [queueInstrument],
      routes: (mill) => queueRoutes(service, mill),
      duties: [obsoleteLetters(service, log)],
      examples: examplesFor(engine),
      close: () => opened.disposeAsync(),
    }
  },
}

/** A namespace of another model stops the start: otherwise every embedding would be made and then refused. */
async function checkModel(service: EmbeddingService): Promise<void> {
  try {
    await service.checkModel()
  } catch (error) {
    if (!(error instanceof VectorsRefused)) throw error
    throw new OptionError(`${error.message}; or give another "namespace" in --config`)
  }
}

function examplesFor(engine: string): OpenPreset['examples'] {
  // The port is known once it listens.
  const url = '<url>'
  const version = '{"entryType":"guideline","entryId":"7","versionId":"v2","content":"Be brief."}'
  const post = `curl -H 'content-type: application/json' -d '${version}' ${url}/api/v1/embeddings`
  const dead = `millrace dead list --type ${EMBED_TYPE} --engine '${redactUrl(engine)}'`
  return [
    [post, 'a version of an entry; a newer one replaces it while it waits'],
    [`curl ${url}/api/v1/embeddings/stats`, 'pending, inFlight, dlqSize, uniqueEntries'],
    [`curl '${url}/api/v1/embeddings/search?text=short+answers'`, 'the entries whose text is nearest'],
    ...(engine === 'memory:' ? [] : [[dead, 'what failed for good'] as const]),
  ]
}
