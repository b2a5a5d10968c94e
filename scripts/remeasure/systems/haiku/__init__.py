"""haiku.rag behind ``systems.contract``, in an environment without the workflow's packages."""
