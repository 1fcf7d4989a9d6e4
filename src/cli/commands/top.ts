import { type Command, Option } from 'commander'
import { OptionError } from '../../errors.ts'
import { duration, wholeNumber } from '../arguments.ts'
import { type Cli, examples, type SharedOptions, withExistingMill } from '../cli.ts'
import { EXIT } from '../exit.ts'
import { onQuitKey, Screen } from '../screen.ts'
import { onStopSignals } from '../stop-signals.ts'
import { renderTop } from '../top/frame.ts'
import { type TopSnapshot, TopWatch, toJson } from '../top/snapshot.ts'

interface TopOptions extends SharedOptions {
  readonly interval: number
  readonly times?: number
}

const INTERVAL_MS_MIN = 100

export function addTop(program: Command, cli: Cli): void {
  program
    .command('top')
    .summary('watch jobs as they run')
    .description('Watch counts, rates, progress, the longest wait and dead letters. It changes nothing.')
    .addOption(new Option('--interval <duration>', 'the time between updates').argParser(duration).default(1_000, '1s'))
    .option(
      '--times <n>',
      'end after this many updates (default: no end; 1 with neither a terminal nor --json)',
      wholeNumber,
    )
    .addHelpText(
      'after',
      `${examples([
        ['millrace top', 'live in the terminal; end it with q or Ctrl-C'],
        ['millrace top --interval 5s', 'update less often'],
        ['millrace top | cat', 'one update, as text'],
        ['millrace top --json --times 60', 'a line each second for a minute, for a program'],
      ])}

On Kafka the figures come from the offsets of the log and of the group: it also shows the lag of each type, and which
partitions each member of the group has. IN/S is what was written to the log, DONE/S what the group has settled.`,
    )
    .action((_options, command: Command) => top(cli, command.optsWithGlobals<TopOptions>()))
}

async function top(cli: Cli, options: TopOptions): Promise<void> {
  checkOptions(options)
  const { terminal, clock } = cli
  const live = terminal.columns !== null && options.json === undefined
  const times = options.times ?? (live || options.json ? Number.POSITIVE_INFINITY : 1)
  const stop = new AbortController()
  const quit = (): void => stop.abort()
  // It holds nothing, so a stop need not wait until the store is open.
  let isOpen = false
  const stopListening = onStopSignals(
    clock,
    () => (isOpen ? quit() : process.exit(EXIT.done)),
    () => process.exit(EXIT.done),
  )
  await withExistingMill(cli, options, async (mill) => {
    isOpen = true
    const view = live ? openView(cli, quit) : printer(cli, options)
    const watch = new TopWatch(mill, options.engine, clock)
    try {
      for (let looked = 1; !stop.signal.aborted; looked += 1) {
        view.show(await watch.look())
        if (looked >= times) break
        await clock.sleep(options.interval, stop.signal)
      }
    } finally {
      view.close()
    }
  }).finally(stopListening)
}

function checkOptions({ interval, times }: TopOptions): void {
  if (interval < INTERVAL_MS_MIN)
    throw new OptionError(`'interval' is ${interval} ms; give ${INTERVAL_MS_MIN} ms or more`)
  if (times !== undefined && times < 1) throw new OptionError(`'times' is ${times}; give a whole number from 1`)
}

interface View {
  show(snapshot: TopSnapshot): void
  close(): void
}

function openView({ terminal }: Cli, quit: () => void): View {
  const screen = new Screen(terminal.out)
  const closeKeyboard = onQuitKey(process.stdin, quit)
  screen.enter()
  return {
    show: (snapshot) =>
      screen.draw(renderTop(snapshot, { columns: screen.columns, rows: screen.rows, paint: terminal.paint })),
    close: () => {
      screen.leave()
      closeKeyboard()
    },
  }
}

function printer({ terminal }: Cli, options: TopOptions): View {
  const canvas = { columns: null, rows: null, paint: terminal.paint }
  return {
    show: (snapshot) => {
      if (options.json) terminal.print(JSON.stringify(toJson(snapshot)))
      else for (const line of renderTop(snapshot, canvas)) terminal.print(line)
    },
    close: () => {},
  }
}
