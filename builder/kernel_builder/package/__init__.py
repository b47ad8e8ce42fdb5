"""Step 6: checked artefacts → the dist tree: ``dist/<kernel>/build/<variant>/…``, source archive and card."""
