"""`python -m jackstay`: the command line, where no script was installed."""

from jackstay.cli.main import main

main()
