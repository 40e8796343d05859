"""What `make notebooks` keeps of an output: nothing that only a running kernel could show."""

from nbconvert.preprocessors import Preprocessor

LIVE = "application/vnd.jupyter.widget-view+json"


class WithoutLiveWidgets(Preprocessor):
    """Leaves the live form of a widget out where the output has another form too.

    Its kernel is gone when the notebook is opened again: JupyterLab would then show "model not found" in
    place of the picture or the text that is stored beside it.
    """

    def preprocess_cell(self, cell, resources, index):
        for output in cell.get("outputs", []):
            if len(output.get("data", {})) > 1:
                output["data"].pop(LIVE, None)
        return cell, resources
