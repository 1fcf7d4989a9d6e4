import type { ComponentChildren } from 'preact'

export interface Column<Row> {
  readonly key: string
  /** What stands above it, and before each value when the table becomes cards on a narrow screen. */
  readonly title: string
  /** Other than its title, such as a box that ticks every row. */
  readonly head?: ComponentChildren
  readonly cell: (row: Row) => ComponentChildren
  readonly align?: 'end'
  /** Takes the room that is left. */
  readonly wide?: boolean
}

interface TableProps<Row> {
  /** Said to those who cannot see the heading above it. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  readonly rowClass?: (row: Row) => string
}

const classOf = ({ align, wide }: Column<never>): string => [align ?? '', wide === true ? 'wide' : ''].join(' ').trim()

export function Table<Row>({ caption, columns, rows, keyOf, rowClass }: TableProps<Row>) {
  return (
    <div class="table-frame">
      <table class="table">
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" class={classOf(column)}>
                {column.head ?? column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={rowClass?.(row) ?? ''}>
              {columns.map((column) => (
                <td key={column.key} class={classOf(column)} data-title={column.title}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
