"""The built-in system under test: LanceDB hybrid search and a model that calls tools."""
