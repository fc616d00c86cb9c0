use consign_core_api::ConfigurationError;

fn forge() -> ConfigurationError {
    ConfigurationError { problems: Vec::new() }
}

fn main() {}
