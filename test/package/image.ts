/** Does what the Dockerfile of examples/deploy says, in plain folders: for machines without Docker. */
import { cpSync, globSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { dockerfile } from '../examples/deployed.ts'

export interface Image {
  /** The working folder of the last stage. */
  readonly folder: string
  readonly environment: Readonly<Record<string, string>>
}

/** Each stage is a folder, and its absolute paths are within it. */
export function buildImage(context: string, root: string, shell: (command: string, cwd: string) => void): Image {
  const stages = new Map<string, string>()
  const environment: Record<string, string> = {}
  let stage = root
  let folder = root
  for (const { name, text } of dockerfile()) {
    const words = text.split(' ')
    switch (name) {
      case 'FROM': {
        stage = path.join(root, `stage-${stages.size}`)
        stages.set(words[2] ?? '', stage)
        break
      }
      case 'WORKDIR':
        folder = path.join(stage, text)
        mkdirSync(folder, { recursive: true })
        break
      case 'COPY': {
        const from = /^--from=(\S+) /.exec(text)?.[1]
        const [to = '', ...sources] = words.filter((word) => !word.startsWith('--')).toReversed()
        for (const source of sources.toReversed())
          copy(from === undefined ? context : stages.get(from), source, folder, to)
        break
      }
      case 'RUN':
        shell(text.replaceAll(/(?<= )\//g, `${stage}/`), folder)
        break
      case 'ENV': {
        const [variable = '', value = ''] = text.split('=')
        environment[variable] = value
        break
      }
      default:
    }
  }
  return { folder, environment }
}

function copy(from: string | undefined, source: string, folder: string, to: string): void {
  if (from === undefined) throw new Error(`there is no such stage to copy ${source} from`)
  if (path.isAbsolute(source)) {
    cpSync(path.join(from, source), path.join(folder, to), { recursive: true, verbatimSymlinks: true })
    return
  }
  for (const file of globSync(source, { cwd: from })) cpSync(path.join(from, file), path.join(folder, to, file))
}
