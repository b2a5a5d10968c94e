"""Serve a model with vLLM under the contract of a model server; unknown options go to ``vllm serve``."""

import argparse
from pathlib import Path

from remeasure import cli, vllm_server


class PassingParser(argparse.ArgumentParser):
    """Takes its own options and keeps the others, in their order, as ``options``."""

    def parse_args(self, args=None, namespace=None) -> argparse.Namespace:
        """Parse; words that are not known here are vLLM's."""
        found, found.options = self.parse_known_args(args, namespace)
        return found


class Once(argparse.Action):
    """Keeps a value; a second one, from the model's `options`, would silently win."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        """Keep the value."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice; take it out of `options`")
        setattr(namespace, self.dest, values)


def work(args: argparse.Namespace) -> None:
    """Run vLLM until it ends or nobody needs it."""
    status = vllm_server.serve(args.model, args.options, args.served_name, args.port, args.port_file)
    if status:
        raise SystemExit(status)


def main(argv=None) -> int:
    """Command-line entry."""
    parser = PassingParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--port", action=Once, type=int, required=True, help="0 takes any free port")
    parser.add_argument(
        "--port-file", action=Once, type=Path, required=True, help="gets the port once vLLM is ready"
    )
    parser.add_argument(
        "--served-name", action=Once, required=True, help="model name that requests must give"
    )
    parser.add_argument(
        "--model", action=Once, required=True, help="folder of the model, or its name on the hub"
    )
    return cli.run(parser, work, argv)


if __name__ == "__main__":
    raise SystemExit(main())
