"""Checks of scikit-learn that an estimator with `sample_weight` and no public bound must refuse."""

WITHOUT_A_BOUND = dict.fromkeys(
    (
        "check_sample_weights_pandas_series",
        "check_sample_weights_not_an_array",
        "check_sample_weights_list",
        "check_sample_weights_shape",
        "check_sample_weights_not_overwritten",
        "check_sample_weight_equivalence_on_dense_data",
        "check_classifiers_one_label_sample_weights",
        "check_all_zero_sample_weights_error",  # with a bound too: it would say what weights are
    ),
    "weights are refused without a public bound",
)
