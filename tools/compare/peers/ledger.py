"""All figures of a comparison: one value for each round, subject and broker; medians and ratios over rounds."""

from statistics import median

import msgspec

RABBITMQ, FAST, PLAIN = "RabbitMQ", "PandoMQ", "PandoMQ plain"


class Figure(msgspec.Struct):
    """One measurement on one broker, once in each round; None where it was impossible."""

    subject: str
    broker: str
    unit: str
    values: list[float | None] = []
    errors: list[str] = []

    @property
    def median(self) -> float | None:
        found = [value for value in self.values if value is not None]
        return median(found) if found else None


class Ledger(msgspec.Struct):
    rounds: int = 0
    figures: list[Figure] = []

    def figure(self, subject: str, broker: str, unit: str) -> Figure:
        for figure in self.figures:
            if (figure.subject, figure.broker, figure.unit) == (subject, broker, unit):
                return figure
        figure = Figure(subject, broker, unit)
        self.figures.append(figure)
        return figure

    def note(self, subject: str, broker: str, unit: str, value: float) -> None:
        """Enters the current round's value."""
        figure = self.figure(subject, broker, unit)
        figure.values += [None] * (self.rounds - len(figure.values)) + [value]

    def note_error(self, subject: str, broker: str, unit: str, error: str) -> None:
        figure = self.figure(subject, broker, unit)
        if error not in figure.errors:
            figure.errors.append(error)

    def median(self, subject: str, broker: str, unit: str) -> float | None:
        return self.figure(subject, broker, unit).median

    def ratio(self, subject: str, unit: str, broker: str, other: str = RABBITMQ) -> float | None:
        """The median over rounds of one broker's value over the other's in the same round."""
        pairs = zip(self.figure(subject, broker, unit).values, self.figure(subject, other, unit).values, strict=False)
        ratios = [mine / theirs for mine, theirs in pairs if mine is not None and theirs]
        return median(ratios) if ratios else None
