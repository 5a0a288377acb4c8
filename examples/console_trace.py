"""Tracing: OpenTelemetry spans of a guarded answer, printed as a tree.

In an application you configure the SDK once, and `Guardrail()` finds it; nothing else is needed. Here the provider is
handed over, so that the spans can be printed at the end. Needs: pip install 'guardrail-stream[otel]'

Run: python examples/console_trace.py
"""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrail import Guardrail
from guardrail.telemetry.spans import SpanObserver
from guardrail.testing import ScriptedGenerator

PASSAGES = ["The museum opens at 10:00. Entry costs 8 euro.", "The café is on the second floor."]
SHOWN = ("outcome", "reason", "accepted", "claims", "delta_r.worst")


def print_tree(spans, parent=None, depth=0):
    """Print the spans below a parent, in order of their beginning."""
    own = [s for s in spans if (s.parent.span_id if s.parent else None) == parent]
    for span in sorted(own, key=lambda s: s.start_time):
        found = {name: span.attributes.get(f"guardrail.{name}") for name in SHOWN}
        notes = ", ".join(f"{name}={value}" for name, value in found.items() if value is not None)
        name = "  " * depth + span.name
        print(f"{name:24} {(span.end_time - span.start_time) / 1e6:7.1f} ms  {notes}")
        print_tree(spans, span.context.span_id, depth + 1)


def main():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    guard = Guardrail(observers=[SpanObserver(tracer_provider=provider)])
    model = ScriptedGenerator("The museum opens at 11:00.", "The museum opens at 10:00. Entry costs 8 euro.")
    outcome = guard.run_sync(model, question="When does the museum open?", context=PASSAGES)

    print(outcome.text)
    print()
    print_tree(exporter.get_finished_spans())


if __name__ == "__main__":
    main()
