/** A sparkline: the trend without axes. */
export function Spark({ values }: { readonly values: readonly number[] }) {
  if (values.length < 2) return <svg class="spark" viewBox="0 0 100 24" aria-hidden="true" focusable="false" />
  const top = Math.max(1, ...values)
  const step = 100 / (values.length - 1)
  const points = values.map((value, index) => `${(index * step).toFixed(1)},${(22 - (value / top) * 20).toFixed(1)}`)
  return (
    <svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <polygon class="spark-area" points={`0,24 ${points.join(' ')} 100,24`} />
      <polyline class="spark-line" points={points.join(' ')} />
    </svg>
  )
}
