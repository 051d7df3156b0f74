"""LoRA adapters and heads for the usual embedders; `../MODEL_CARD.md` tells of them."""
