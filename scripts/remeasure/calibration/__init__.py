"""How far a study's judge can be trusted: a sample of its verdicts, other judges, labels of people."""
